// The table, -L, and small words that the other views share.
#include <fmt/format.h>

#include "gpu/smi_views.h"
#include "gpu/telemetry.h"

namespace sextant::gpu::smi {
namespace {

constexpr std::string_view kRule =
    "+-----------------------------------------------------------------------------------------+\n";
constexpr std::string_view kCardRule =
    "+-----------------------------------------+------------------------+----------------------+\n";
constexpr std::string_view kMigRule =
    "+------------------+----------------------------------+-----------+-----------------------+\n";
constexpr size_t kNameWidth = 27;
constexpr size_t kProcessWidth = 46;  // a process' name and its memory together

// "NVIDIA RTX PRO 6000 Blac...": cut to the column.
std::string Shorten(std::string_view name) {
  if (name.size() <= kNameWidth) return std::string(name);
  return std::string(name.substr(0, kNameWidth - 3)) + "...";
}

std::string CardRows(const Card& card) {
  const Readings r = ReadingsOf(card);
  const std::string fan = card.model->fan ? (r.idle ? "0%" : "30%") : "N/A";
  const std::string util = card.mig_enabled ? "N/A" : fmt::format("{}%", card.gpu_util);
  const std::string ecc = !card.ecc_enabled  ? "Off"
                          : card.mig_enabled ? "On"
                                             : std::to_string(card.ecc_uncorrected);
  std::string out;
  out += fmt::format("|{:>4}  {:<27}    On  |   {:<16} Off |{:>21} |\n", card.index,
                     Shorten(card.product), card.bus_id, ecc);
  out += fmt::format(
      "| {:>3}   {:>2}C    {:<2}{:>15.0f}W /{:>5}W |{:>8}MiB / {:>6}MiB |{:>8}{:>13} |\n", fan,
      r.temperature, r.pstate, r.power_w, card.model->power_default, r.memory_used_mib,
      card.memory_mib, util, "Default");
  out += fmt::format("|{:41}|{:24}|{:>21} |\n", "", "", MigMode(card));
  out += kCardRule;
  return out;
}

std::string MigRows(const Card& card) {
  std::string out;
  int device = 0;
  for (const MigDevice& d : card.mig) {
    const MigProfile& p = *card.model->FindMigProfile(d.profile);
    out += fmt::format(
        "|{:>3}{:>5}{:>4}{:>4}  |{:>16}MiB / {:>5}MiB    | {:<3}{:>6} |"
        "{:>3}{:>4}{:>5}{:>5}{:>5} |\n",
        card.index, d.gpu_instance, d.compute_instance, device++, MigMemoryUsedMib(card, d),
        p.memory_mib, p.multiprocessors, 0, p.copy_engines, p.encoders, p.decoders, p.ofas,
        p.jpegs);
    out += fmt::format("|{:18}|{:>16}MiB / {:>5}MiB    |{:11}|{:23}|\n", "", 0, MigBar1Mib(card, p),
                       "", "");
    out += kMigRule;
  }
  return out;
}

std::string MigTable(const Scene& scene) {
  std::string rows;
  bool any = false;
  for (const Card* card : scene.cards) {
    any = any || card->mig_enabled;
    rows += MigRows(*card);
  }
  if (!any) return "";
  std::string out = "\n";
  out += kRule;
  out += fmt::format("| {:<88}|\n", "MIG devices:");
  out += kMigRule;
  out +=
      "| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         "
      "|\n"
      "|      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG "
      "|\n"
      "|                  |                                  |        ECC|                       "
      "|\n"
      "|==================+==================================+===========+=======================|"
      "\n";
  if (rows.empty()) {
    out += fmt::format("|  {:<87}|\n", "No MIG devices found");
    out += kRule;
  }
  return out + rows;
}

std::string Instance(int id) { return id < 0 ? "N/A" : std::to_string(id); }

std::string ProcessRow(const Card& card, const Process& p) {
  const std::string memory = fmt::format("{}MiB", p.memory_mib);
  // A long name keeps its end, which tells more.
  const size_t room = kProcessWidth - memory.size() - 1;
  std::string name = p.name;
  if (name.size() > room) name = "..." + name.substr(name.size() - (room - 3));
  return fmt::format("|{:>5}{:>6}{:>5}{:>16}{:>7}   {:<{}}{} |\n", card.index,
                     Instance(p.gpu_instance), Instance(p.compute_instance), p.pid, "C", name,
                     kProcessWidth - memory.size(), memory);
}

std::string ProcessTable(const Scene& scene) {
  std::string rows;
  for (const Card* card : scene.cards) {
    for (const Process& p : card->processes) rows += ProcessRow(*card, p);
  }
  std::string out = "\n";
  out += kRule;
  out += fmt::format("| {:<88}|\n", "Processes:");
  out +=
      "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory "
      "|\n"
      "|        ID   ID                                                               Usage      "
      "|\n"
      "|=========================================================================================|"
      "\n";
  out += rows.empty() ? fmt::format("|  {:<87}|\n", "No running processes found") : rows;
  out += kRule;
  return out;
}

}  // namespace

std::string Table(const Scene& scene) {
  const Inventory& inv = *scene.inventory;
  std::string out = AscTime(scene.now) + "       \n";
  out += kRule;
  out += fmt::format("| NVIDIA-SMI {:<22} Driver Version: {:<14} CUDA Version: {:<9}|\n",
                     inv.driver_version, inv.driver_version, inv.cuda_version);
  out += kCardRule;
  out +=
      "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC "
      "|\n"
      "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. "
      "|\n"
      "|                                         |                        |               MIG M. "
      "|\n"
      "|=========================================+========================+======================|"
      "\n";
  for (const Card* card : scene.cards) out += CardRows(*card);
  out += MigTable(scene);
  out += ProcessTable(scene);
  out += "Simulated by Sextant: no GPU hardware behind this table.\n";
  return out;
}

std::string List(const Scene& scene) {
  std::string out;
  for (const Card* card : scene.cards) {
    out += fmt::format("GPU {}: {} (UUID: {})\n", card->index, card->product, card->uuid);
    int device = 0;
    for (const MigDevice& d : card->mig) {
      out += fmt::format("  MIG {:<11} Device {:>2}: (UUID: {})\n", d.profile, device++, d.uuid);
    }
  }
  return out;
}

std::string AscTime(const SmiTime& now) {
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::tm& t = now.local;
  return fmt::format("{} {} {:>2} {:02}:{:02}:{:02} {}",
                     kDays.substr(static_cast<size_t>(t.tm_wday % 7) * 3, 3),
                     kMonths.substr(static_cast<size_t>(t.tm_mon % 12) * 3, 3), t.tm_mday,
                     t.tm_hour, t.tm_min, t.tm_sec, t.tm_year + 1900);
}

std::string CsvTime(const SmiTime& now) {
  const std::tm& t = now.local;
  return fmt::format("{}/{:02}/{:02} {:02}:{:02}:{:02}.{:03}", t.tm_year + 1900, t.tm_mon + 1,
                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, now.milliseconds);
}

FabricState FabricOf(const Inventory& inventory, const Card& card) {
  const Model& m = *card.model;
  if (m.compute_major < 9 || m.nvlink_group < 4) return {};
  const bool rack = m.c2c && !inventory.fabric_uuid.empty();
  return {.state = "Completed",
          .status = "Success",
          .clique = std::to_string(rack ? inventory.fabric_clique : 0),
          .cluster = rack ? inventory.fabric_uuid : "00000000-0000-0000-0000-000000000000"};
}

std::string_view AddressingMode(const Card& card) {
  const Model& m = *card.model;
  if (m.c2c) return "ATS";
  if (m.compute_major == 7 && m.compute_minor == 0) return kNotAvailable;
  // Captured: None on Hopper and Ampere servers, HMM on Ada and Blackwell PCIe cards.
  return (m.compute_major == 8 && m.compute_minor == 9) || m.compute_major >= 12 ? "HMM" : "None";
}

std::string_view MigMode(const Card& card) {
  if (!card.model->MigCapable()) return kNotAvailable;
  return card.mig_enabled ? "Enabled" : "Disabled";
}

std::string_view C2cMode(const Card& card) {
  if (card.model->c2c) return "Enabled";
  return card.model->compute_major >= 9 ? "Disabled" : kNotAvailable;
}

int MigBar1Mib(const Card& card, const MigProfile& profile) {
  const int slices = card.model->mig_memory_slices;
  return slices == 0 ? 0 : card.model->bar1_mib / slices * profile.size - 1;
}

}  // namespace sextant::gpu::smi
