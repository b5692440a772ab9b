// The parts of nvidia-smi, one function for each thing it can show. For smi.cc only.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gpu/smi.h"

namespace sextant::gpu::smi {

// What a view is made of: the cards that -i left, in the order of the inventory.
struct Scene {
  const Inventory* inventory = nullptr;
  std::vector<const Card*> cards;
  SmiTime now;
};

inline constexpr std::string_view kNotAvailable = "N/A";
inline constexpr std::string_view kDeprecated = "Requested functionality has been deprecated";

std::string Table(const Scene& scene);                         // no option
std::string List(const Scene& scene);                          // -L
std::string QueryText(const Scene& scene, unsigned sections);  // -q; kAllSections
std::string QueryXml(const Scene& scene);                      // -q -x
std::string Topology(const Scene& scene);                      // topo -m
std::string NvLinkStatus(const Scene& scene);                  // nvlink -s
std::string MigProfiles(const Scene& scene);                   // mig -lgip
std::string MigPlacements(const Scene& scene);                 // mig -lgipp
std::string MigInstances(const Scene& scene);                  // mig -lgi

// -d NAME,NAME: the bits of QueryText's `sections`; 0 when a name is unknown.
inline constexpr unsigned kAllSections = ~0u;
unsigned ParseSections(std::string_view list);

// --query-gpu and its kin. The error's message is what nvidia-smi prints.
struct CsvFormat {
  bool header = true;
  bool units = true;
};
enum class CsvKind { kGpu, kComputeApps, kAccountedApps, kRetiredPages, kRemappedRows };
Result<std::string> Csv(const Scene& scene, CsvKind kind, std::string_view fields,
                        CsvFormat format);
std::string CsvHelp(CsvKind kind);  // --help-query-...

std::string AscTime(const SmiTime& now);  // "Tue Jul 14 09:00:26 2026"
std::string CsvTime(const SmiTime& now);  // "2026/07/14 09:00:27.792"

// What the card's NVSwitches say; "N/A" without them. On a single server the cluster UUID is zero.
struct FabricState {
  std::string state = "N/A", status = "N/A", clique = "N/A", cluster = "N/A";
};
FabricState FabricOf(const Inventory& inventory, const Card& card);
// "None", "HMM" or "ATS"; "N/A" where there is no such thing.
std::string_view AddressingMode(const Card& card);
// "Enabled", "Disabled", "N/A".
std::string_view MigMode(const Card& card);
std::string_view C2cMode(const Card& card);
// BAR1 memory of one MIG device.
int MigBar1Mib(const Card& card, const MigProfile& profile);

}  // namespace sextant::gpu::smi
