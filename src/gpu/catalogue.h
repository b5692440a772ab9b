// The catalogue of GPU models: what each card is, as one data file (catalogue.json, embedded).
//
//   Result<const Model*> model = FindModel("a100-80gb");   // alias, product name or label value
//   for (const Model& m : Catalogue().models) ...          // in the order of the file
//
// Memory in MiB, power in W, clocks in MHz, temperatures in degrees Celsius. The catalogue is read
// once, on first use, and then never changes: pointers to models stay valid and any thread may use
// them. Every model names its sources in the file; a number that no source gives is 0 or empty, and
// the views print N/A for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sextant::gpu {

// One way to cut a GPU instance out of a card (NVML: GpuInstanceProfileInfo).
struct MigProfile {
  int id = 0;        // as `nvidia-smi mig -lgip` prints it
  std::string name;  // "1g.10gb", "1g.10gb+me"
  int slices = 0;    // compute slices
  int memory_mib = 0;
  int instances = 0;  // at most so many at once
  int multiprocessors = 0;
  int copy_engines = 0, decoders = 0, encoders = 0, jpegs = 0, ofas = 0;
  int size = 0;             // memory slices that one instance takes
  std::vector<int> starts;  // memory slices at which it may begin
};

// The server that usually carries the card. Vectors have one entry per card.
struct ServerLayout {
  std::string machine;  // DMI product name, nvidia.com/gpu.machine
  int count = 0;
  std::vector<std::string> bus_ids;  // "00000000:07:00.0"
  std::vector<int> numa_nodes;
  std::vector<std::string> cpus;  // CPUs of the card's NUMA node, "0-31,64-95"
  // Cards that share a PCIe switch carry the same number; cards of one NUMA node on different
  // switches meet at a host bridge (NODE), others across sockets (SYS).
  std::vector<int> pcie_switches;
  // NVLinks between two cards where they are not all joined alike (DGX-1); else empty.
  std::vector<std::vector<int>> nvlink_matrix;
  std::vector<int> gpu_numa_nodes;  // NUMA node of the card's own memory (Grace); else empty
};

struct Model {
  std::string id;  // our name, the first alias: "a100-sxm4-40gb"
  std::vector<std::string> aliases;
  std::string product;       // as nvidia-smi prints it
  std::string brand;         // "NVIDIA", "Tesla", "NVIDIA RTX"
  std::string architecture;  // "Ampere", "Ada Lovelace"
  int compute_major = 0, compute_minor = 0;
  int memory_mib = 0, reserved_mib = 0, bar1_mib = 0;
  uint32_t pci_device_id = 0;  // 0x20B010DE: device, vendor
  uint32_t pci_subsystem_id = 0;
  int pci_class = 0x0302;  // 3D controller; 0x0300 with a display
  int pcie_gen = 0;
  int power_default = 0, power_min = 0, power_max = 0, power_idle = 0;
  int temp_idle = 0, temp_shutdown = 0, temp_slowdown = 0, temp_max = 0, temp_memory_max = 0;
  bool temp_tlimit = false;  // thresholds are distances to the limit (Hopper and later)
  int clock_graphics_max = 0, clock_memory_max = 0, clock_video_max = 0;
  int clock_graphics_idle = 0, clock_memory_idle = 0, clock_video_idle = 0;
  int clock_graphics_app = 0;  // default applications clock; 0: no such setting
  std::string idle_pstate;     // "P0" or "P8"
  bool fan = false;
  bool ecc = true;
  bool c2c = false;
  int multiprocessors = 0;
  int remap_banks = 0;  // banks with spare rows for remapping
  int nvlink_version = 0, nvlink_links = 0;
  int nvlink_mbps = 0;   // of one link, one way, as NVML field values give it
  int nvlink_group = 0;  // cards joined by NVLink: 0 none, else groups of so many
  std::string vbios, part_number, gpu_part_number, inforom_image, inforom_oem, inforom_ecc;
  int mig_memory_slices = 0;  // 0: not MIG capable
  int mig_max_instances = 0;
  std::vector<MigProfile> mig_profiles;
  ServerLayout server;
  std::string driver, cuda;  // versions that a new inventory reports
  std::vector<std::string> sources;

  bool MigCapable() const { return !mig_profiles.empty(); }
  const MigProfile* FindMigProfile(std::string_view name) const;  // nullptr when absent
};

struct ModelCatalogue {
  std::vector<Model> models;
};

// The embedded catalogue. A mistake in it is ours: it stops the process (CHECK).
const ModelCatalogue& Catalogue();

// Reads a catalogue text; Catalogue() is this over the embedded one. For tests.
Result<ModelCatalogue> ParseCatalogue(std::string_view json);

// Finds a model by id, alias, product name or its label form, in any letter case; a leading
// "NVIDIA" may be left out. Else an error that names the nearest ones.
Result<const Model*> FindModel(std::string_view name);

// At most `most` ids and aliases nearest to `name` by edit distance, nearest first; empty when none
// is near.
std::vector<std::string> NearestModels(std::string_view name, size_t most = 3);

// GFD's rule for label values: characters outside [A-Za-z0-9-_. ] are dropped, then runs of blanks
// become '-': "NVIDIA H100 80GB HBM3" -> "NVIDIA-H100-80GB-HBM3".
std::string SanitiseLabel(std::string_view text);

}  // namespace sextant::gpu
