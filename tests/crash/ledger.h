// What the clients of a lab were told, and what a lab that comes back must therefore hold.
//
// Every object has one writer with one request under way. An answered request must be there after a
// crash, with its uid and, where nobody else writes the object, its resourceVersion; one without an
// answer may have happened or not, but nothing in between. And no revision is given twice: what an
// answer, event or list shows is newer than all that anybody had been told when it was asked for.
//
// Threads: one. Complaints collect until they are taken.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/document.h"

namespace sextant::crash {

using Revision = uint64_t;

enum class Verb : uint8_t { kNone, kCreate, kUpdate, kDelete };

struct Tracked {
  bool there = false;
  std::string uid;
  Revision revision = 0;
  std::string data;
  Verb asked = Verb::kNone;  // without an answer so far
  std::string asked_data;
  Revision asked_after = 0;  // the newest revision that anybody knew then
};

class Ledger {
 public:
  // `shared`: others write these objects too, so that their revisions move.
  Ledger(std::string what, bool shared, std::string (*data_of)(const api::Object&),
         Revision* newest)
      : what_(std::move(what)), shared_(shared), data_of_(data_of), newest_(newest) {}

  // Not there if nothing was ever asked of it.
  const Tracked& Of(const std::string& name) const;
  void Ask(const std::string& name, Verb verb, std::string data);
  void Answer(const std::string& name, const api::Object& answer);
  // A lab has come back and lists these: they must be what was told, and are the truth from now on.
  void Check(const std::vector<api::Object>& listed);
  std::map<std::string, std::string> Uids() const;  // of what is there, by name

  std::vector<std::string> TakeComplaints() { return std::exchange(complaints_, {}); }
  size_t answers() const { return answers_; }

 private:
  void CheckOne(const std::string& name, Tracked& tracked, const api::Object* found);
  bool Same(const Tracked& tracked, const api::Object& found) const;
  bool AsAsked(const Tracked& tracked, const api::Object* found) const;
  void Complain(std::string_view name, std::string text);

  const std::string what_;
  const bool shared_;
  std::string (*const data_of_)(const api::Object&);
  Revision* const newest_;  // that anybody was told; of all ledgers
  std::map<std::string, Tracked> objects_;
  std::vector<std::string> complaints_;
  size_t answers_ = 0;
};

Revision RevisionOf(const api::Object& object);

}  // namespace sextant::crash
