// --query-gpu, --query-compute-apps and the other CSV queries. Each has a list of fields (names and
// units) and, row by row, a map from field to value; a field without a value is "[N/A]".
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "gpu/smi_csv_fields.h"
#include "gpu/smi_views.h"
#include "gpu/telemetry.h"

namespace sextant::gpu::smi {
namespace {

using Values = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kMissing = "[N/A]";

constexpr auto kComputeFields = std::to_array<CsvField>({
    {"timestamp", "", ""},
    {"gpu_name", "", ""},
    {"gpu_bus_id", "", ""},
    {"gpu_serial", "", ""},
    {"gpu_uuid", "", ""},
    {"pid", "", ""},
    {"process_name", "name", ""},
    {"used_gpu_memory", "used_memory", "MiB"},
});
constexpr auto kAccountedFields = std::to_array<CsvField>({
    {"timestamp", "", ""},
    {"gpu_name", "", ""},
    {"gpu_bus_id", "", ""},
    {"gpu_serial", "", ""},
    {"gpu_uuid", "", ""},
    {"vgpu_instance", "", ""},
    {"pid", "", ""},
    {"gpu_utilization", "gpu_util", "%"},
    {"mem_utilization", "mem_util", "%"},
    {"max_memory_usage", "", "MiB"},
    {"time", "", "ms"},
});
constexpr auto kRetiredFields = std::to_array<CsvField>({
    {"timestamp", "", ""},
    {"gpu_name", "", ""},
    {"gpu_bus_id", "", ""},
    {"gpu_serial", "", ""},
    {"gpu_uuid", "", ""},
    {"retired_pages.address", "", ""},
    {"retired_pages.timestamp", "", ""},
    {"retired_pages.cause", "", ""},
});
constexpr auto kRemappedFields = std::to_array<CsvField>({
    {"timestamp", "", ""},
    {"gpu_name", "", ""},
    {"gpu_bus_id", "", ""},
    {"gpu_serial", "", ""},
    {"gpu_uuid", "", ""},
    {"remapped_rows.correctable", "", ""},
    {"remapped_rows.uncorrectable", "", ""},
    {"remapped_rows.pending", "", ""},
    {"remapped_rows.failure", "", ""},
    {"remapped_rows.histogram.max", "", ""},
    {"remapped_rows.histogram.high", "", ""},
    {"remapped_rows.histogram.partial", "", ""},
    {"remapped_rows.histogram.low", "", ""},
    {"remapped_rows.histogram.none", "", ""},
});

std::span<const CsvField> FieldsOf(CsvKind kind) {
  switch (kind) {
    case CsvKind::kGpu:
      return GpuFields();
    case CsvKind::kComputeApps:
      return kComputeFields;
    case CsvKind::kAccountedApps:
      return kAccountedFields;
    case CsvKind::kRetiredPages:
      return kRetiredFields;
    case CsvKind::kRemappedRows:
      return kRemappedFields;
  }
  return {};
}

std::string_view SwitchOf(CsvKind kind) {
  switch (kind) {
    case CsvKind::kGpu:
      return "--query-gpu";
    case CsvKind::kComputeApps:
      return "--query-compute-apps";
    case CsvKind::kAccountedApps:
      return "--query-accounted-apps";
    case CsvKind::kRetiredPages:
      return "--query-retired-pages";
    case CsvKind::kRemappedRows:
      return "--query-remapped-rows";
  }
  return "";
}

std::string Watts(double watts) { return fmt::format("{:.2f}", watts); }

void Put(Values& v, std::initializer_list<std::string_view> names, std::string_view value) {
  for (const std::string_view name : names) v[std::string(name)] = value;
}

// Only when there is something to say: else the field stays "[N/A]".
void PutKnown(Values& v, std::string_view name, std::string_view value) {
  if (!value.empty() && value != kNotAvailable) v[std::string(name)] = value;
}

void Identity(const Scene& scene, const Card& card, Values& v) {
  const Model& m = *card.model;
  v["timestamp"] = CsvTime(scene.now);
  v["driver_version"] = scene.inventory->driver_version;
  v["count"] = std::to_string(scene.inventory->cards.size());
  v["index"] = std::to_string(card.index);
  Put(v, {"name", "gpu_name"}, card.product);
  Put(v, {"serial", "gpu_serial"}, card.serial);
  Put(v, {"uuid", "gpu_uuid"}, card.uuid);
  Put(v, {"pci.bus_id", "gpu_bus_id"}, card.bus_id);
  if (card.bus_id.size() == 16) {
    v["pci.domain"] = "0x" + card.bus_id.substr(4, 4);
    v["pci.bus"] = "0x" + card.bus_id.substr(9, 2);
    v["pci.device"] = "0x" + card.bus_id.substr(12, 2);
  }
  v["pci.baseClass"] = fmt::format("0x{:x}", m.pci_class >> 8);
  v["pci.subClass"] = fmt::format("0x{:x}", m.pci_class & 0xFF);
  v["pci.device_id"] = fmt::format("0x{:08X}", m.pci_device_id);
  v["pci.sub_device_id"] = fmt::format("0x{:08X}", m.pci_subsystem_id);
  for (const char* name : {"current", "gpucurrent", "max", "gpumax", "hostmax"}) {
    v["pcie.link.gen." + std::string(name)] = std::to_string(m.pcie_gen);
  }
  Put(v, {"pcie.link.width.current", "pcie.link.width.max"}, "16");
  PutKnown(v, "vbios_version", m.vbios);
  PutKnown(v, "inforom.img", m.inforom_image);
  PutKnown(v, "inforom.oem", m.inforom_oem);
  PutKnown(v, "inforom.ecc", m.inforom_ecc);
  v["inforom.checksum_validation"] = "valid";
  v["compute_cap"] = fmt::format("{}.{}", m.compute_major, m.compute_minor);
}

void Modes(const Card& card, Values& v) {
  const Model& m = *card.model;
  Put(v,
      {"display_mode", "power.management", "clocks.applications.graphics",
       "clocks.applications.memory", "clocks.default_applications.graphics",
       "clocks.default_applications.memory"},
      fmt::format("[{}]", kDeprecated));
  v["display_attached"] = "No";
  v["display_active"] = "Disabled";
  v["persistence_mode"] = "Enabled";
  v["addressing_mode"] = AddressingMode(card);
  v["accounting.mode"] = "Disabled";
  v["accounting.buffer_size"] = "4000";
  v["gpu_recovery_action"] = card.healthy ? "None" : "Reset";
  v["compute_mode"] = "Default";
  Put(v, {"ecc.mode.current", "ecc.mode.pending"}, card.ecc_enabled ? "Enabled" : "Disabled");
  PutKnown(v, "mig.mode.current", MigMode(card));
  PutKnown(v, "mig.mode.pending", MigMode(card));
  PutKnown(v, "c2c.mode", C2cMode(card));
  // Volta has no GSP.
  if (m.compute_major > 7 || m.compute_minor >= 5) {
    Put(v, {"gsp.mode.current", "gsp.mode.default"}, "Enabled");
  }
  Put(v,
      {"protected_memory.total", "protected_memory.used", "protected_memory.free",
       "encoder.stats.sessionCount", "encoder.stats.averageFps", "encoder.stats.averageLatency"},
      "0");
  if (m.compute_major == 9 || m.compute_major == 10) v["edpp_multiplier"] = "100.00";
}

// The fabric and platform fields: captured as they are, without brackets, zeroes included.
void FabricAndPlatform(const Scene& scene, const Card& card, Values& v) {
  const FabricState f = FabricOf(*scene.inventory, card);
  v["fabric.state"] = f.state;
  v["fabric.status"] = f.status;
  v["fabric.cliqueId"] = f.clique;
  v["fabric.clusterUuid"] = f.cluster;
  Put(v,
      {"fabric.health.summary", "fabric.health.bandwidth",
       "fabric.health.route_recovery_in_progress", "fabric.health.route_unhealthy",
       "fabric.health.access_timeout_recovery", "fabric.health.incorrect_configuration"},
      kNotAvailable);
  v["platform.chassis_serial_number"] = "";
  Put(v, {"platform.slot_number", "platform.tray_index"}, "0");
  v["platform.host_id"] = "1";
  v["platform.peer_type"] = "Direct Connected";
  v["platform.module_id"] = std::to_string(card.slot + 1);
  v["platform.gpu_fabric_guid"] = "0x0000000000000000";
}

void Sensors(const Card& card, Values& v) {
  const Model& m = *card.model;
  const Readings r = ReadingsOf(card);
  if (m.fan) v["fan.speed"] = r.idle ? "0" : "30";
  v["pstate"] = r.pstate;
  v["clocks_event_reasons.supported"] = "0x00000000000001FF";
  v["clocks_event_reasons.active"] = fmt::format("0x{:016X}", r.idle ? 1 : 0);
  v["clocks_event_reasons.gpu_idle"] = r.idle ? "Active" : "Not Active";
  for (const char* name :
       {"applications_clocks_setting", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
        "hw_power_brake_slowdown", "sw_thermal_slowdown", "sync_boost"}) {
    v["clocks_event_reasons." + std::string(name)] = "Not Active";
  }
  for (const char* name : {"sw_power_cap", "sync_boost", "sw_thermal_slowdown",
                           "hw_thermal_slowdown", "hw_power_brake_slowdown"}) {
    v["clocks_event_reasons_counters." + std::string(name)] = "0";
  }
  v["memory.total"] = std::to_string(card.memory_mib);
  v["memory.reserved"] = std::to_string(r.memory_reserved_mib);
  v["memory.used"] = std::to_string(r.memory_used_mib);
  v["memory.free"] = std::to_string(r.memory_free_mib);
  if (!card.mig_enabled) {
    v["utilization.gpu"] = std::to_string(card.gpu_util);
    v["utilization.memory"] = std::to_string(card.memory_util);
    Put(v, {"utilization.encoder", "utilization.decoder", "utilization.jpeg", "utilization.ofa"},
        "0");
  }
  v["temperature.gpu"] = std::to_string(r.temperature);
  v["temperature.gpu.tlimit"] =
      m.temp_tlimit ? std::to_string(m.temp_max - r.temperature) : std::string(kNotAvailable);
  v["temperature.memory"] =
      r.memory_temperature >= 0 ? std::to_string(r.memory_temperature) : std::string(kNotAvailable);
  Put(v, {"power.draw", "power.draw.average", "power.draw.instant"}, Watts(r.power_w));
  Put(v, {"power.limit", "enforced.power.limit", "power.default_limit"}, Watts(m.power_default));
  v["power.min_limit"] = Watts(m.power_min);
  v["power.max_limit"] = Watts(m.power_max);
  Put(v, {"clocks.current.graphics", "clocks.current.sm"}, std::to_string(r.clock_graphics));
  v["clocks.current.memory"] = std::to_string(r.clock_memory);
  v["clocks.current.video"] = std::to_string(r.clock_video);
  Put(v, {"clocks.max.graphics", "clocks.max.sm"}, std::to_string(m.clock_graphics_max));
  v["clocks.max.memory"] = std::to_string(m.clock_memory_max);
}

void EccCounts(const Card& card, Values& v) {
  if (!card.ecc_enabled) return;
  for (const char* span : {"volatile", "aggregate"}) {
    for (const bool corrected : {true, false}) {
      const std::string stem =
          fmt::format("ecc.errors.{}.{}.", corrected ? "corrected" : "uncorrected", span);
      const std::string count =
          std::to_string(corrected ? card.ecc_corrected : card.ecc_uncorrected);
      for (const char* name : {"device_memory", "dram", "total"}) v[stem + name] = count;
      v[stem + "sram"] = "0";
    }
  }
  if (card.model->compute_major < 8) return;
  const std::string stem = "ecc.errors.uncorrected.";
  for (const char* name : {"volatile.sram.parity", "volatile.sram.secded", "aggregate.sram.parity",
                           "aggregate.sram.secded", "aggregate.sram.l2", "aggregate.sram.sm",
                           "aggregate.sram.mcu", "aggregate.sram.pcie", "aggregate.sram.other"}) {
    v[stem + name] = "0";
  }
  v[stem + "aggregate.sram.thresholdExceeded"] = "No";
}

// Row remapping took the place of page retirement with Ampere.
void Repairs(const Card& card, Values& v) {
  const Model& m = *card.model;
  if (m.compute_major < 8) {
    Put(v, {"retired_pages.single_bit_ecc.count", "retired_pages.double_bit.count"}, "0");
    v["retired_pages.pending"] = "No";
    return;
  }
  if (!card.mig_enabled) {
    Put(v, {"remapped_rows.correctable", "remapped_rows.uncorrectable"}, "0");
    Put(v, {"remapped_rows.pending", "remapped_rows.failure"}, "No");
  }
  if (m.remap_banks == 0) return;
  v["remapped_rows.histogram.max"] = std::to_string(m.remap_banks);
  Put(v,
      {"remapped_rows.histogram.high", "remapped_rows.histogram.partial",
       "remapped_rows.histogram.low", "remapped_rows.histogram.none"},
      "0");
}

std::vector<Values> Rows(const Scene& scene, CsvKind kind) {
  std::vector<Values> out;
  for (const Card* card : scene.cards) {
    Values v;
    Identity(scene, *card, v);
    switch (kind) {
      case CsvKind::kGpu:
        Modes(*card, v);
        FabricAndPlatform(scene, *card, v);
        Sensors(*card, v);
        EccCounts(*card, v);
        Repairs(*card, v);
        out.push_back(std::move(v));
        break;
      case CsvKind::kComputeApps:
        for (const Process& p : card->processes) {
          v["pid"] = std::to_string(p.pid);
          v["process_name"] = p.name;
          v["used_gpu_memory"] = std::to_string(p.memory_mib);
          out.push_back(v);
        }
        break;
      case CsvKind::kAccountedApps:  // accounting is off
        break;
      case CsvKind::kRetiredPages:
        for (const char* cause : {"Single Bit ECC", "Double Bit ECC"}) {
          v["retired_pages.cause"] = cause;
          out.push_back(v);
        }
        break;
      case CsvKind::kRemappedRows:
        Repairs(*card, v);
        out.push_back(std::move(v));
        break;
    }
  }
  return out;
}

bool IsNumber(std::string_view value) {
  return !value.empty() && value.find_first_not_of("0123456789.-") == std::string_view::npos;
}

std::string Cell(const CsvField& field, const Values& row, CsvFormat format) {
  const auto found = row.find(field.name);
  if (found == row.end()) return std::string(kMissing);
  std::string out = found->second;
  if (format.units && !field.unit.empty() && IsNumber(out)) out += " " + std::string(field.unit);
  return out;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Result<std::string> Csv(const Scene& scene, CsvKind kind, std::string_view fields,
                        CsvFormat format) {
  std::vector<const CsvField*> wanted;
  const std::span<const CsvField> known = FieldsOf(kind);
  std::string_view rest = fields;
  while (true) {
    const size_t comma = rest.find(',');
    std::string name(Trim(rest.substr(0, comma)));
    // The older spelling of one family.
    constexpr std::string_view kOld = "clocks_throttle_reasons.";
    if (name.starts_with(kOld)) name.replace(0, kOld.size(), "clocks_event_reasons.");
    const auto found = std::ranges::find_if(known, [&name](const CsvField& f) {
      return f.name == name || (!f.alias.empty() && f.alias == name);
    });
    if (found == known.end()) {
      return Fail(BadRequest(fmt::format("Field \"{}\" is not a valid field to query.\n\n",
                                         Trim(rest.substr(0, comma)))));
    }
    wanted.push_back(&*found);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  std::string out;
  if (format.header) {
    for (const CsvField* f : wanted) {
      out += (f == wanted.front() && out.empty()) ? "" : ", ";
      out += f->name;
      if (!f->unit.empty()) out += fmt::format(" [{}]", f->unit);
    }
    out += "\n";
  }
  for (const Values& row : Rows(scene, kind)) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      out += (i > 0 ? ", " : "") + Cell(*wanted[i], row, format);
    }
    out += "\n";
  }
  return out;
}

std::string CsvHelp(CsvKind kind) {
  std::string out =
      fmt::format("List of valid properties to query for the switch \"{}\":\n\n", SwitchOf(kind));
  for (const CsvField& f : FieldsOf(kind)) {
    out += fmt::format("\"{}\"", f.name);
    constexpr std::string_view kFamily = "clocks_event_reasons.";
    if (f.name.starts_with(kFamily)) {
      out += fmt::format(" or \"clocks_throttle_reasons.{}\"", f.name.substr(kFamily.size()));
    } else if (!f.alias.empty()) {
      out += fmt::format(" or \"{}\"", f.alias);
    }
    out += f.unit.empty() ? "\n\n" : fmt::format("\nIn {}.\n\n", f.unit);
  }
  return out;
}

}  // namespace sextant::gpu::smi
