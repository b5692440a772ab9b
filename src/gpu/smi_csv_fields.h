// Names of what nvidia-smi's CSV queries can ask for. For smi_csv.cc only.
#pragma once

#include <span>
#include <string_view>

namespace sextant::gpu::smi {

struct CsvField {
  std::string_view name;   // as the heading shows it
  std::string_view alias;  // a second name; may be empty
  std::string_view unit;   // "MiB"; empty: a value without unit
};

std::span<const CsvField> GpuFields();

}  // namespace sextant::gpu::smi
