// Tables: the columns that `kubectl get` shows, by kind (k8s.io/kubernetes
// pkg/printers/internalversion). Data and small pure functions; any thread.
#pragma once

#include <span>
#include <string_view>

#include "api/custom_kind.h"
#include "api/document.h"
#include "api/schema.h"
#include "base/clock.h"

namespace sextant::server {

struct Column {
  std::string_view name;    // empty: a cell that no column names
  std::string_view type;    // "string", "integer", "boolean"
  std::string_view format;  // "name" for the first, else ""
  int priority = 0;         // above 0: only with -o wide
  // Writes the cell of one object.
  void (*cell)(api::Value object, Time now, api::Mut out) = nullptr;
};

struct TableKind {
  std::string_view group;
  std::string_view plural;
  std::span<const Column> columns;
  // Sets row["conditions"] where the kind's rows have some.
  void (*conditions)(api::Value object, api::Mut row) = nullptr;
};

// The kind's own table, or Name and Created At (what the server prints for kinds without one).
const TableKind& TableFor(const api::Resource& resource);

// The tables of networking, autoscaling, admission, certificates and resource claims.
std::span<const TableKind> LaterGroupTables();

// The cell of a custom resource's column, made in place.
void PrintCustomCell(const api::PrinterColumn& column, const api::Object& object, Time now,
                     api::Mut out);

// "5d", "3h20m": kubectl's age (duration.HumanDuration).
std::string HumanDuration(Duration d);

}  // namespace sextant::server
