// nvidia-smi -q, as text and as XML (nvsmi_device_v13.dtd).
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "gpu/smi_tree.h"
#include "gpu/smi_views.h"
#include "gpu/telemetry.h"

namespace sextant::gpu::smi {
namespace {

// The names that -d takes, in the order of the bits.
enum Section : unsigned {
  kMemory = 1u << 0,
  kUtilization = 1u << 1,
  kEcc = 1u << 2,
  kTemperature = 1u << 3,
  kPower = 1u << 4,
  kClock = 1u << 5,
  kCompute = 1u << 6,
  kPids = 1u << 7,
  kPerformance = 1u << 8,
  kSupportedClocks = 1u << 9,
  kPageRetirement = 1u << 10,
  kAccounting = 1u << 11,
  kEncoderStats = 1u << 12,
  kGpuTargetTemp = 1u << 13,
  kVoltage = 1u << 14,
  kFbcStats = 1u << 15,
  kRowRemapper = 1u << 16,
  kGspFirmware = 1u << 17,
  kPowerSmoothing = 1u << 18,
  kPowerProfiles = 1u << 19,
};
constexpr std::array<std::string_view, 20> kSectionNames = {"MEMORY",
                                                            "UTILIZATION",
                                                            "ECC",
                                                            "TEMPERATURE",
                                                            "POWER",
                                                            "CLOCK",
                                                            "COMPUTE",
                                                            "PIDS",
                                                            "PERFORMANCE",
                                                            "SUPPORTED_CLOCKS",
                                                            "PAGE_RETIREMENT",
                                                            "ACCOUNTING",
                                                            "ENCODER_STATS",
                                                            "SUPPORTED_GPU_TARGET_TEMP",
                                                            "VOLTAGE",
                                                            "FBC_STATS",
                                                            "ROW_REMAPPER",
                                                            "GSP_FIRMWARE_VERSION",
                                                            "POWER_SMOOTHING",
                                                            "POWER_PROFILES"};

constexpr std::string_view kNo = "No";
constexpr std::string_view kNone = "None";

using Fields = std::vector<Field>;

// One card with what its sensors say: what every section below is made from.
struct Subject {
  const Inventory& inventory;
  const Card& card;
  const Model& model;
  Readings readings;
};

std::string Mib(int value) { return fmt::format("{} MiB", value); }
std::string Mhz(int value) { return fmt::format("{} MHz", value); }
std::string Celsius(int value) { return fmt::format("{} C", value); }
std::string Watts(double value) { return fmt::format("{:.2f} W", value); }
std::string Or(const std::string& text) { return text.empty() ? std::string(kNotAvailable) : text; }

Field NotAvailable(std::string_view label, std::string_view tag) {
  return Leaf(label, tag, kNotAvailable);
}

void Identity(const Subject& s, Fields& out) {
  out.push_back(Leaf("Product Name", "product_name", s.card.product));
  out.push_back(Leaf("Product Brand", "product_brand", s.model.brand));
  out.push_back(Leaf("Product Architecture", "product_architecture", s.model.architecture));
  out.push_back(Leaf("Display Mode", "display_mode", kDeprecated));
  out.push_back(Leaf("Display Attached", "display_attached", kNo));
  out.push_back(Leaf("Display Active", "display_active", "Disabled"));
  out.push_back(Leaf("Persistence Mode", "persistence_mode", "Enabled"));
  out.push_back(Leaf("Addressing Mode", "addressing_mode", AddressingMode(s.card)));
  out.push_back(Group("MIG Mode", "mig_mode",
                      {Leaf("Current", "current_mig", MigMode(s.card)),
                       Leaf("Pending", "pending_mig", MigMode(s.card))}));
}

Field MigDeviceField(const Subject& s, const MigDevice& d, int index) {
  const MigProfile& p = *s.model.FindMigProfile(d.profile);
  const int used = MigMemoryUsedMib(s.card, d);
  const int bar1 = MigBar1Mib(s.card, p);
  const auto count = [](std::string_view label, std::string_view tag, int n) {
    return Leaf(label, tag, std::to_string(n));
  };
  return Group(
      "MIG Device", "mig_device",
      {count("Index", "index", index), count("GPU Instance ID", "gpu_instance_id", d.gpu_instance),
       count("Compute Instance ID", "compute_instance_id", d.compute_instance),
       Group("Device Attributes", "device_attributes",
             {Group("Shared", "shared",
                    {count("Multiprocessor count", "multiprocessor_count", p.multiprocessors),
                     count("Copy Engine count", "copy_engine_count", p.copy_engines),
                     count("Encoder count", "encoder_count", p.encoders),
                     count("Decoder count", "decoder_count", p.decoders),
                     count("OFA count", "ofa_count", p.ofas),
                     count("JPG count", "jpg_count", p.jpegs)})}),
       Group("ECC Errors", "ecc_error_count",
             {Group("Volatile", "volatile_count",
                    {count("SRAM Uncorrectable", "sram_uncorrectable", 0)})}),
       Group("Shared FB Memory Usage", "fb_memory_usage",
             {Leaf("Total", "total", Mib(p.memory_mib)), Leaf("Reserved", "reserved", Mib(0)),
              Leaf("Used", "used", Mib(used)), Leaf("Free", "free", Mib(p.memory_mib - used))}),
       Group("Shared BAR1 Memory", "bar1_memory_usage",
             {Leaf("Total", "total", Mib(bar1)), Leaf("Used", "used", Mib(0)),
              Leaf("Free", "free", Mib(bar1))})});
}

void MigDevices(const Subject& s, Fields& out) {
  Field devices = Group("", "mig_devices", {});
  for (const MigDevice& d : s.card.mig) {
    devices.children.push_back(MigDeviceField(s, d, static_cast<int>(devices.children.size())));
  }
  if (devices.children.empty()) devices.xml_value = kNone;
  out.push_back(std::move(devices));
}

// The last 64 bits of the UUID: a number of the card's own.
std::string Pdi(const Card& card) {
  std::string digits;
  for (const char c : card.uuid) {
    if (c != '-') digits.push_back(c);
  }
  return "0x" + (digits.size() > 16 ? digits.substr(digits.size() - 16) : digits);
}

// "0000", "61", "00" of "00000000:61:00.0".
struct BusParts {
  std::string domain, bus, device;
};
BusParts SplitBusId(const Card& card) {
  const std::string& id = card.bus_id;
  if (id.size() != 16) return {"0000", "00", "00"};
  return {id.substr(4, 4), id.substr(9, 2), id.substr(12, 2)};
}

// Domain, bus and device as one number, as the driver makes it.
std::string BoardId(const Card& card) {
  const BusParts parts = SplitBusId(card);
  unsigned value = 0;
  const std::string digits = parts.domain + parts.bus + parts.device;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return fmt::format("0x{:x}", value);
}

void Board(const Subject& s, Fields& out) {
  const Model& m = s.model;
  out.push_back(In(kAccounting, Leaf("Accounting Mode", "accounting_mode", "Disabled")));
  out.push_back(
      In(kAccounting, Leaf("Accounting Mode Buffer Size", "accounting_mode_buffer_size", "4000")));
  out.push_back(
      Group("Driver Model", "driver_model",
            {NotAvailable("Current", "current_dm"), NotAvailable("Pending", "pending_dm")}));
  out.push_back(Leaf("Serial Number", "serial", s.card.serial));
  out.push_back(Leaf("GPU UUID", "uuid", s.card.uuid));
  out.push_back(Leaf("GPU PDI", "pdi", Pdi(s.card)));
  out.push_back(Leaf("Minor Number", "minor_number", std::to_string(s.card.minor)));
  out.push_back(Leaf("VBIOS Version", "vbios_version", Or(m.vbios)));
  out.push_back(Leaf("MultiGPU Board", "multigpu_board", kNo));
  out.push_back(Leaf("Board ID", "board_id", BoardId(s.card)));
  out.push_back(Leaf("Board Part Number", "board_part_number", Or(m.part_number)));
  out.push_back(Leaf("GPU Part Number", "gpu_part_number", Or(m.gpu_part_number)));
  out.push_back(NotAvailable("FRU Part Number", "gpu_fru_part_number"));
  out.push_back(
      Group("Platform Info", "platformInfo",
            {NotAvailable("Chassis Serial Number", "chassis_serial_number"),
             NotAvailable("Slot Number", "slot_number"), NotAvailable("Tray Index", "tray_index"),
             NotAvailable("Host ID", "host_id"), NotAvailable("Peer Type", "peer_type"),
             Leaf("Module Id", "module_id", std::to_string(s.card.slot + 1)),
             NotAvailable("GPU Fabric GUID", "gpu_fabric_guid")}));
  out.push_back(Group("Inforom Version", "inforom_version",
                      {Leaf("Image Version", "img_version", Or(m.inforom_image)),
                       Leaf("OEM Object", "oem_object", Or(m.inforom_oem)),
                       Leaf("ECC Object", "ecc_object", Or(m.inforom_ecc)),
                       NotAvailable("Power Management Object", "pwr_object")}));
  out.push_back(Group("Inforom BBX Object Flush", "inforom_bbx_flush",
                      {NotAvailable("Latest Timestamp", "latest_timestamp"),
                       NotAvailable("Latest Duration", "latest_duration")}));
  out.push_back(
      Group("GPU Operation Mode", "gpu_operation_mode",
            {NotAvailable("Current", "current_gom"), NotAvailable("Pending", "pending_gom")}));
  out.push_back(Leaf("GPU C2C Mode", "c2c_mode", C2cMode(s.card)));
  out.push_back(Group("GPU Virtualization Mode", "gpu_virtualization_mode",
                      {Leaf("Virtualization Mode", "virtualization_mode", kNone),
                       NotAvailable("Host VGPU Mode", "host_vgpu_mode"),
                       NotAvailable("vGPU Heterogeneous Mode", "vgpu_heterogeneous_mode")}));
  out.push_back(
      Leaf("GPU Recovery Action", "gpu_recovery_action", s.card.healthy ? kNone : "Reset"));
  // Volta has no GSP.
  const bool gsp = m.compute_major > 7 || m.compute_minor >= 5;
  out.push_back(In(kGspFirmware, Leaf("GSP Firmware Version", "gsp_firmware_version",
                                      gsp ? s.inventory.driver_version : "N/A")));
  out.push_back(
      Group("IBMNPU", "ibmnpu", {NotAvailable("Relaxed Ordering Mode", "relaxed_ordering_mode")}));
}

void Pci(const Subject& s, Fields& out) {
  const BusParts bus = SplitBusId(s.card);
  const std::string gen = std::to_string(s.model.pcie_gen);
  const std::string device = fmt::format("{:08X}", s.model.pci_device_id);
  const std::string subsystem = fmt::format("{:08X}", s.model.pci_subsystem_id);
  const int base = s.model.pci_class >> 8, sub = s.model.pci_class & 0xFF;
  out.push_back(Group(
      "PCI", "pci",
      {Leaf("Bus", "pci_bus", "0x" + bus.bus, bus.bus),
       Leaf("Device", "pci_device", "0x" + bus.device, bus.device),
       Leaf("Domain", "pci_domain", "0x" + bus.domain, bus.domain),
       Leaf("Base Classcode", "pci_base_class", fmt::format("0x{:x}", base), std::to_string(base)),
       Leaf("Sub Classcode", "pci_sub_class", fmt::format("0x{:x}", sub), std::to_string(sub)),
       Leaf("Device Id", "pci_device_id", "0x" + device, device),
       Leaf("Bus Id", "pci_bus_id", s.card.bus_id),
       Leaf("Sub System Id", "pci_sub_system_id", "0x" + subsystem, subsystem),
       Group("GPU Link Info", "pci_gpu_link_info",
             {Group("PCIe Generation", "pcie_gen",
                    {Leaf("Max", "max_link_gen", gen), Leaf("Current", "current_link_gen", gen),
                     Leaf("Device Current", "device_current_link_gen", gen),
                     Leaf("Device Max", "max_device_link_gen", gen),
                     Leaf("Host Max", "max_host_link_gen", gen)}),
              Group("Link Width", "link_widths",
                    {Leaf("Max", "max_link_width", "16x"),
                     Leaf("Current", "current_link_width", "16x")})}),
       Group(
           "Bridge Chip", "pci_bridge_chip",
           {NotAvailable("Type", "bridge_chip_type"), NotAvailable("Firmware", "bridge_chip_fw")}),
       Leaf("Replays Since Reset", "replay_counter", "0"),
       Leaf("Replay Number Rollovers", "replay_rollover_counter", "0"),
       Leaf("Tx Throughput", "tx_util", "0 KB/s"), Leaf("Rx Throughput", "rx_util", "0 KB/s"),
       NotAvailable("Atomic Caps Outbound", "atomic_caps_outbound"),
       NotAvailable("Atomic Caps Inbound", "atomic_caps_inbound")}));
}

void Performance(const Subject& s, Fields& out) {
  const auto off = [](std::string_view label, const std::string& name) {
    return Leaf(label, "clocks_event_reason_" + name, "Not Active");
  };
  out.push_back(
      Leaf("Fan Speed", "fan_speed",
           s.model.fan ? (s.readings.idle ? "0 %" : "30 %") : std::string(kNotAvailable)));
  out.push_back(
      In(kPerformance, Leaf("Performance State", "performance_state", s.readings.pstate)));
  Field thermal = off("HW Thermal Slowdown", "hw_thermal_slowdown");
  Field brake = off("HW Power Brake Slowdown", "hw_power_brake_slowdown");
  thermal.extra_indent = brake.extra_indent = 1;
  out.push_back(In(kPerformance,
                   Group("Clocks Event Reasons", "clocks_event_reasons",
                         {Leaf("Idle", "clocks_event_reason_gpu_idle",
                               s.readings.idle ? "Active" : "Not Active"),
                          off("Applications Clocks Setting", "applications_clocks_setting"),
                          off("SW Power Cap", "sw_power_cap"), off("HW Slowdown", "hw_slowdown"),
                          std::move(thermal), std::move(brake), off("Sync Boost", "sync_boost"),
                          off("SW Thermal Slowdown", "sw_thermal_slowdown"),
                          off("Display Clock Setting", "display_clocks_setting")})));
  const auto zero = [](std::string_view label, const std::string& name) {
    return Leaf(label, "clocks_event_reasons_counters_" + name, "0 us");
  };
  out.push_back(
      In(kPerformance,
         Group("Clocks Event Reasons Counters", "clocks_event_reasons_counters",
               {zero("SW Power Capping", "sw_power_cap"), zero("Sync Boost", "sync_boost"),
                zero("SW Thermal Slowdown", "sw_therm_slowdown"),
                zero("HW Thermal Slowdown", "hw_therm_slowdown"),
                zero("HW Power Braking", "hw_power_brake")})));
  out.push_back(In(kPerformance, Leaf("Sparse Operation Mode", "sparse_operation_mode",
                                      s.model.compute_major == 9 ? "Disabled" : "N/A")));
}

Field MemoryGroup(std::string_view label, std::string_view tag, int total, int used) {
  return In(kMemory, Group(label, tag,
                           {Leaf("Total", "total", Mib(total)), Leaf("Used", "used", Mib(used)),
                            Leaf("Free", "free", Mib(total - used))}));
}

void MemoryAndUse(const Subject& s, Fields& out) {
  const Readings& r = s.readings;
  out.push_back(In(kMemory, Group("FB Memory Usage", "fb_memory_usage",
                                  {Leaf("Total", "total", Mib(s.card.memory_mib)),
                                   Leaf("Reserved", "reserved", Mib(r.memory_reserved_mib)),
                                   Leaf("Used", "used", Mib(r.memory_used_mib)),
                                   Leaf("Free", "free", Mib(r.memory_free_mib))})));
  // A card on a coherent link to its CPU (Grace) is not reached through a BAR.
  out.push_back(
      s.model.c2c ? In(kMemory, Group("BAR1 Memory Usage", "bar1_memory_usage",
                                      {NotAvailable("Total", "total"), NotAvailable("Used", "used"),
                                       NotAvailable("Free", "free")}))
                  : MemoryGroup("BAR1 Memory Usage", "bar1_memory_usage", s.model.bar1_mib,
                                std::min(s.model.bar1_mib, 1)));
  out.push_back(
      MemoryGroup("Conf Compute Protected Memory Usage", "cc_protected_memory_usage", 0, 0));
  out.push_back(In(kCompute, Leaf("Compute Mode", "compute_mode", "Default")));
  const auto percent = [&s](std::string_view label, std::string_view tag, int value) {
    return s.card.mig_enabled ? NotAvailable(label, tag)
                              : Leaf(label, tag, fmt::format("{} %", value));
  };
  out.push_back(
      In(kUtilization,
         Group("Utilization", "utilization",
               {percent("GPU", "gpu_util", s.card.gpu_util),
                percent("Memory", "memory_util", s.card.memory_util),
                percent("Encoder", "encoder_util", 0), percent("Decoder", "decoder_util", 0),
                percent("JPEG", "jpeg_util", 0), percent("OFA", "ofa_util", 0)})));
  const auto sessions = [](std::string_view label, std::string_view tag) {
    return Group(
        label, tag,
        {Leaf("Active Sessions", "session_count", "0"), Leaf("Average FPS", "average_fps", "0"),
         Leaf("Average Latency", "average_latency", "0")});
  };
  out.push_back(In(kEncoderStats, sessions("Encoder Stats", "encoder_stats")));
  out.push_back(In(kFbcStats, sessions("FBC Stats", "fbc_stats")));
  out.push_back(Group("DRAM Encryption Mode", "dram_encryption_mode",
                      {NotAvailable("Current", "current_dram_encryption"),
                       NotAvailable("Pending", "pending_dram_encryption")}));
}

// Volta counts by place and kind of error; later cards by SRAM and DRAM.
Fields VoltaEccCounters(const Subject& s) {
  const auto kind = [&s](std::string_view label, std::string_view tag, int64_t memory, bool cbu) {
    const auto count = [&s](std::string_view l, std::string_view t, int64_t n) {
      return s.card.ecc_enabled ? Leaf(l, t, std::to_string(n)) : NotAvailable(l, t);
    };
    return Group(
        label, tag,
        {count("Device Memory", "device_memory", memory),
         count("Register File", "register_file", 0), count("L1 Cache", "l1_cache", 0),
         count("L2 Cache", "l2_cache", 0), NotAvailable("Texture Memory", "texture_memory"),
         NotAvailable("Texture Shared", "texture_shm"),
         cbu ? count("CBU", "cbu", 0) : NotAvailable("CBU", "cbu"),
         count("Total", "total", memory)});
  };
  // The blanks at the end are nvidia-smi's own.
  return {kind("Single Bit            ", "single_bit", s.card.ecc_corrected, false),
          kind("Double Bit            ", "double_bit", s.card.ecc_uncorrected, true)};
}

// The counters of one time span. `counted`: whether ECC is on.
Fields EccCounters(const Subject& s) {
  const bool counted = s.card.ecc_enabled;
  if (s.model.compute_major == 7 && s.model.compute_minor == 0) return VoltaEccCounters(s);
  const auto count = [counted](std::string_view label, std::string_view tag, int64_t n) {
    return counted ? Leaf(label, tag, std::to_string(n)) : NotAvailable(label, tag);
  };
  Fields out = {count("SRAM Correctable", "sram_correctable", 0)};
  if (s.model.compute_major >= 8) {
    out.push_back(count("SRAM Uncorrectable Parity", "sram_uncorrectable_parity", 0));
    out.push_back(count("SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", 0));
  } else {
    out.push_back(count("SRAM Uncorrectable", "sram_uncorrectable", 0));
  }
  out.push_back(count("DRAM Correctable", "dram_correctable", s.card.ecc_corrected));
  out.push_back(count("DRAM Uncorrectable", "dram_uncorrectable", s.card.ecc_uncorrected));
  return out;
}

void Ecc(const Subject& s, Fields& out) {
  const std::string_view mode = s.card.ecc_enabled ? "Enabled" : "Disabled";
  const std::string_view zero = s.card.ecc_enabled ? "0" : kNotAvailable;
  out.push_back(In(
      kEcc, Group("ECC Mode", "ecc_mode",
                  {Leaf("Current", "current_ecc", mode), Leaf("Pending", "pending_ecc", mode)})));
  Fields aggregate = EccCounters(s);
  Fields errors;
  if (s.model.compute_major >= 8) {
    aggregate.push_back(Leaf("SRAM Threshold Exceeded", "sram_threshold_exceeded",
                             s.card.ecc_enabled ? kNo : kNotAvailable));
  }
  errors.push_back(Group("Volatile", "volatile", EccCounters(s)));
  errors.push_back(Group("Aggregate", "aggregate", std::move(aggregate)));
  if (s.model.compute_major >= 8) {
    errors.push_back(
        Group("Aggregate Uncorrectable SRAM Sources", "aggregate_uncorrectable_sram_sources",
              {Leaf("SRAM L2", "sram_l2", zero), Leaf("SRAM SM", "sram_sm", zero),
               Leaf("SRAM Microcontroller", "sram_microcontroller", zero),
               Leaf("SRAM PCIE", "sram_pcie", zero), Leaf("SRAM Other", "sram_other", zero)}));
    errors.push_back(Leaf("Channel Repair Pending", "channel_repair_pending", kNo));
    errors.push_back(Leaf("TPC Repair Pending", "tpc_repair_pending", kNo));
    errors.push_back(Leaf("Unrepairable Memory", "unrepairable_memory",
                          s.model.compute_major >= 9 ? kNo : kNotAvailable));
  }
  out.push_back(In(kEcc, Group("ECC Errors", "ecc_errors", std::move(errors))));
}

void Pages(const Subject& s, Fields& out) {
  // Row remapping took the place of page retirement with Ampere.
  const bool retires = s.model.compute_major < 8;
  const std::string_view count = retires ? "0" : kNotAvailable;
  const std::string_view pending = retires ? kNo : kNotAvailable;
  // One line of text, one element with two children in XML.
  const auto retired = [count](std::string_view tag) {
    return Group("", tag,
                 {Leaf("", "retired_count", count), Leaf("", "retired_pagelist", kNotAvailable)});
  };
  out.push_back(
      In(kPageRetirement,
         Group("Retired Pages", "retired_pages",
               {Leaf("Single Bit ECC", "", count), retired("multiple_single_bit_retirement"),
                Leaf("Double Bit ECC", "", count), retired("double_bit_retirement"),
                Leaf("Pending Page Blacklist", "pending_blacklist", pending),
                Leaf("", "pending_retirement", pending)})));
  if (retires || s.card.mig_enabled) {
    out.push_back(In(kRowRemapper, NotAvailable("Remapped Rows", "remapped_rows")));
    return;
  }
  Fields rows = {Leaf("Correctable Error", "remapped_row_corr", "0"),
                 Leaf("Uncorrectable Error", "remapped_row_unc", "0"),
                 Leaf("Pending", "remapped_row_pending", kNo),
                 Leaf("Remapping Failure Occurred", "remapped_row_failure", kNo)};
  if (s.model.remap_banks > 0) {
    const auto banks = [](std::string_view label, const std::string& name, int n) {
      return Leaf(label, "row_remapper_histogram_" + name, fmt::format("{} bank(s)", n));
    };
    rows.push_back(
        Group("Bank Remap Availability Histogram", "row_remapper_histogram",
              {banks("Max", "max", s.model.remap_banks), banks("High", "high", 0),
               banks("Partial", "partial", 0), banks("Low", "low", 0), banks("None", "none", 0)}));
  }
  out.push_back(In(kRowRemapper, Group("Remapped Rows", "remapped_rows", std::move(rows))));
}

void Temperature(const Subject& s, Fields& out) {
  const Model& m = s.model;
  const Readings& r = s.readings;
  const bool memory = r.memory_temperature >= 0;
  Fields t = {Leaf("GPU Current Temp", "gpu_temp", Celsius(r.temperature))};
  if (m.temp_tlimit) {
    t.push_back(Leaf("GPU T.Limit Temp", "gpu_temp_tlimit", Celsius(m.temp_max - r.temperature)));
    t.push_back(Leaf("GPU Shutdown T.Limit Temp", "gpu_temp_max_tlimit_threshold",
                     Celsius(m.temp_max - m.temp_shutdown)));
    t.push_back(Leaf("GPU Slowdown T.Limit Temp", "gpu_temp_slow_tlimit_threshold",
                     Celsius(m.temp_max - m.temp_slowdown)));
    t.push_back(
        Leaf("GPU Max Operating T.Limit Temp", "gpu_temp_max_gpu_tlimit_threshold", Celsius(0)));
  } else {
    t.push_back(NotAvailable("GPU T.Limit Temp", "gpu_temp_tlimit"));
    t.push_back(Leaf("GPU Shutdown Temp", "gpu_temp_max_threshold", Celsius(m.temp_shutdown)));
    t.push_back(Leaf("GPU Slowdown Temp", "gpu_temp_slow_threshold", Celsius(m.temp_slowdown)));
    t.push_back(Leaf("GPU Max Operating Temp", "gpu_temp_max_gpu_threshold", Celsius(m.temp_max)));
  }
  t.push_back(NotAvailable("GPU Target Temperature", "gpu_target_temperature"));
  t.push_back(Leaf("Memory Current Temp", "memory_temp",
                   memory ? Celsius(r.memory_temperature) : std::string(kNotAvailable)));
  if (m.temp_tlimit) {
    t.push_back(Leaf("Memory Max Operating T.Limit Temp", "gpu_temp_max_mem_tlimit_threshold",
                     memory ? Celsius(0) : std::string(kNotAvailable)));
  } else {
    t.push_back(Leaf("Memory Max Operating Temp", "gpu_temp_max_mem_threshold",
                     memory ? Celsius(m.temp_memory_max) : std::string(kNotAvailable)));
  }
  out.push_back(In(kTemperature, Group("Temperature", "temperature", std::move(t))));
  Field target = Group("", "supported_gpu_target_temp",
                       {Leaf("", "gpu_target_temp_min", kNotAvailable),
                        Leaf("", "gpu_target_temp_max", kNotAvailable)});
  out.push_back(In(kGpuTargetTemp, std::move(target)));
}

Fields PowerFields(const std::string& draw, const std::string& limit, const std::string& low,
                   const std::string& high) {
  return {Leaf("", "power_state", kDeprecated),
          Leaf("Average Power Draw", "average_power_draw", draw),
          Leaf("Instantaneous Power Draw", "instant_power_draw", draw),
          Leaf("Current Power Limit", "current_power_limit", limit),
          Leaf("Requested Power Limit", "requested_power_limit", limit),
          Leaf("Default Power Limit", "default_power_limit", limit),
          Leaf("Min Power Limit", "min_power_limit", low),
          Leaf("Max Power Limit", "max_power_limit", high)};
}

void Power(const Subject& s, Fields& out) {
  const Model& m = s.model;
  const Readings& r = s.readings;
  out.push_back(In(kPower, Group("GPU Power Readings", "gpu_power_readings",
                                 PowerFields(Watts(r.power_w), Watts(m.power_default),
                                             Watts(m.power_min), Watts(m.power_max)))));
  // The blank at the end is nvidia-smi's own.
  out.push_back(
      In(kPower, Group("GPU Memory Power Readings ", "gpu_memory_power_readings",
                       {Leaf("Average Power Draw", "average_power_draw",
                             r.memory_power_w >= 0 ? Watts(r.memory_power_w) : "N/A"),
                        NotAvailable("Instantaneous Power Draw", "instant_power_draw")})));
  out.push_back(In(kPower, Group("Module Power Readings", "module_power_readings",
                                 PowerFields("N/A", "N/A", "N/A", "N/A"))));
  out.push_back(In(kPowerSmoothing, NotAvailable("Power Smoothing", "power_smoothing")));
  out.push_back(In(kPowerProfiles,
                   Group("Workload Power Profiles", "power_profiles",
                         {NotAvailable("Requested Profiles", "power_profile_requested_profiles"),
                          NotAvailable("Enforced Profiles", "power_profile_enforced_profiles")})));
  out.push_back(Leaf("EDPp Multiplier", "edpp_multiplier",
                     m.compute_major == 9 || m.compute_major == 10 ? "100.00%" : "N/A"));
}

void Clocks(const Subject& s, Fields& out) {
  const Model& m = s.model;
  const Readings& r = s.readings;
  const auto four = [](std::string_view label, std::string_view tag, int graphics, int memory,
                       int video) {
    return In(kClock, Group(label, tag,
                            {Leaf("Graphics", "graphics_clock", Mhz(graphics)),
                             Leaf("SM", "sm_clock", Mhz(graphics)),
                             Leaf("Memory", "mem_clock", Mhz(memory)),
                             Leaf("Video", "video_clock", Mhz(video))}));
  };
  const auto gone = [](std::string_view label, std::string_view tag) {
    return In(kClock, Group(label, tag,
                            {Leaf("Graphics", "graphics_clock", kDeprecated),
                             Leaf("Memory", "mem_clock", kDeprecated)}));
  };
  out.push_back(four("Clocks", "clocks", r.clock_graphics, r.clock_memory, r.clock_video));
  out.push_back(gone("Applications Clocks", "applications_clocks"));
  out.push_back(gone("Default Applications Clocks", "default_applications_clocks"));
  out.push_back(In(
      kClock, Group("Deferred Clocks", "deferred_clocks", {NotAvailable("Memory", "mem_clock")})));
  out.push_back(four("Max Clocks", "max_clocks", m.clock_graphics_max, m.clock_memory_max,
                     m.clock_video_max));
  out.push_back(In(kClock, Group("Max Customer Boost Clocks", "max_customer_boost_clocks",
                                 {Leaf("Graphics", "graphics_clock", Mhz(m.clock_graphics_max))})));
  out.push_back(In(kClock, Group("Clock Policy", "clock_policy",
                                 {NotAvailable("Auto Boost", "auto_boost"),
                                  NotAvailable("Auto Boost Default", "auto_boost_default")})));
}

void Fabric(const Subject& s, Fields& out) {
  const FabricState f = FabricOf(s.inventory, s.card);
  out.push_back(
      Group("Fabric", "fabric",
            {Leaf("State", "state", f.state), Leaf("Status", "status", f.status),
             Leaf("CliqueId", "cliqueId", f.clique), Leaf("ClusterUUID", "clusterUuid", f.cluster),
             Group("Health", "health",
                   {NotAvailable("Summary", "summary"), NotAvailable("Bandwidth", "bandwidth"),
                    NotAvailable("Route Recovery in progress", "route_recovery_in_progress"),
                    NotAvailable("Route Unhealthy", "route_unhealthy"),
                    NotAvailable("Access Timeout Recovery", "access_timeout_recovery"),
                    NotAvailable("Incorrect Configuration", "incorrect_configuration")})}));
}

// In the text only when -d asks for it.
Field SupportedClocks(const Subject& s, bool text) {
  constexpr int kStep = 15;
  const Model& m = s.model;
  Field memory = Group("", "supported_mem_clock", {});
  memory.children.push_back(Leaf(text ? "Memory" : "", "value", Mhz(m.clock_memory_max)));
  for (int clock = m.clock_graphics_max; clock >= m.clock_graphics_idle; clock -= kStep) {
    Field graphics = Leaf(text ? "Graphics" : "", "supported_graphics_clock", Mhz(clock));
    graphics.extra_indent = 1;
    memory.children.push_back(std::move(graphics));
  }
  return In(kSupportedClocks,
            Group(text ? "Supported Clocks" : "", "supported_clocks", {std::move(memory)}));
}

void Processes(const Subject& s, Fields& out) {
  // This section kept the older, narrower column.
  constexpr size_t kWidth = 42;
  Field all = Group("Processes", "processes", {});
  for (const Process& p : s.card.processes) {
    const auto instance = [](int id) { return id < 0 ? std::string("N/A") : std::to_string(id); };
    Field info =
        Group("", "process_info",
              {Leaf("GPU instance ID", "gpu_instance_id", instance(p.gpu_instance)),
               Leaf("Compute instance ID", "compute_instance_id", instance(p.compute_instance)),
               Leaf("Process ID", "pid", std::to_string(p.pid)), Leaf("Type", "type", "C"),
               Leaf("Name", "process_name", p.name),
               Leaf("Used GPU Memory", "used_memory", Mib(p.memory_mib))});
    for (size_t i = 0; i < info.children.size(); ++i) {
      info.children[i].width = kWidth;
      info.children[i].extra_indent = i >= 3 ? 1 : 0;
    }
    all.children.push_back(std::move(info));
  }
  if (all.children.empty()) {
    // "Processes : None" in the text, an empty element in the XML.
    out.push_back(In(kPids, Leaf("Processes", "", kNone)));
    all.label = "";
  }
  out.push_back(In(kPids, std::move(all)));
  out.push_back(Group("", "accounted_processes", {}));
  out.push_back(Group("Capabilities", "capabilities", {Leaf("EGM", "egm", "disabled")}));
}

Fields CardFields(const Scene& scene, const Card& card, bool supported_clocks_as_text) {
  const Subject s{*scene.inventory, card, *card.model, ReadingsOf(card)};
  Fields out;
  Identity(s, out);
  MigDevices(s, out);
  Board(s, out);
  Pci(s, out);
  Performance(s, out);
  MemoryAndUse(s, out);
  Ecc(s, out);
  Pages(s, out);
  Temperature(s, out);
  Power(s, out);
  Clocks(s, out);
  Fabric(s, out);
  out.push_back(SupportedClocks(s, supported_clocks_as_text));
  Processes(s, out);
  return out;
}

Fields Head(const Scene& scene) {
  return {Leaf("Timestamp", "timestamp", AscTime(scene.now)),
          Leaf("Driver Version", "driver_version", scene.inventory->driver_version),
          Leaf("CUDA Version", "cuda_version", scene.inventory->cuda_version)};
}

}  // namespace

unsigned ParseSections(std::string_view list) {
  unsigned out = 0;
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view name = list.substr(0, comma);
    const auto* found = std::find(kSectionNames.begin(), kSectionNames.end(), name);
    if (found == kSectionNames.end()) return 0;
    out |= 1u << (found - kSectionNames.begin());
    if (comma == std::string_view::npos) return out;
    list.remove_prefix(comma + 1);
  }
}

std::string QueryText(const Scene& scene, unsigned sections) {
  std::string out = "\n==============NVSMI LOG==============\n\n";
  for (const Field& field : Head(scene)) AppendText(field, 0, out);
  AppendText(Leaf("Simulated", "", "Yes (Sextant; no GPU hardware)"), 0, out);
  out += "\n";
  AppendText(Leaf("Attached GPUs", "", std::to_string(scene.inventory->cards.size())), 0, out);
  const bool clocks = sections != kAllSections && (sections & kSupportedClocks) != 0;
  for (const Card* card : scene.cards) {
    out += fmt::format("GPU {}\n", card->bus_id);
    for (const Field& field : CardFields(scene, *card, clocks)) {
      if (sections == kAllSections || (field.sections & sections) != 0) AppendText(field, 1, out);
    }
    out += "\n";
  }
  return out;
}

std::string QueryXml(const Scene& scene) {
  std::string out =
      "<?xml version=\"1.0\" ?>\n"
      "<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v13.dtd\">\n"
      "<nvidia_smi_log>\n"
      "\t<!-- Simulated by Sextant: no GPU hardware. -->\n";
  for (const Field& field : Head(scene)) AppendXml(field, 1, out);
  AppendXml(Leaf("", "attached_gpus", std::to_string(scene.inventory->cards.size())), 1, out);
  for (const Card* card : scene.cards) {
    out += fmt::format("\t<gpu id=\"{}\">\n", card->bus_id);
    for (const Field& field : CardFields(scene, *card, false)) AppendXml(field, 2, out);
    out += "\t</gpu>\n\n";
  }
  out += "</nvidia_smi_log>\n";
  return out;
}

}  // namespace sextant::gpu::smi
