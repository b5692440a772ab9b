#include "gpu/catalogue.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/check.h"
#include "gpu/catalogue_data.h"
#include "gpu/json.h"

namespace sextant::gpu {
namespace {

// Lower case letters and digits only, so that "NVIDIA-A100-SXM4-80GB" meets its product name.
std::string Fold(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (IsAlphanumeric(c)) out.push_back(AsciiLower(c));
  }
  constexpr std::string_view kVendor = "nvidia";
  if (out.size() > kVendor.size() && out.starts_with(kVendor)) out.erase(0, kVendor.size());
  return out;
}

uint32_t Hex32(const Json& value) {
  const std::string text = value.Str();
  uint32_t out = 0;
  const auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  return ec == std::errc() && ptr == text.data() + text.size() ? out : 0;
}

int Int(const Json& value) { return static_cast<int>(value.Int()); }

MigProfile ReadProfile(const Json& j) {
  MigProfile p;
  p.id = Int(j.At("id"));
  p.name = j.At("name").Str();
  p.slices = Int(j.At("slices"));
  p.memory_mib = Int(j.At("memory_mib"));
  p.instances = Int(j.At("instances"));
  p.multiprocessors = Int(j.At("sm"));
  p.copy_engines = Int(j.At("copy"));
  p.decoders = Int(j.At("dec"));
  p.encoders = Int(j.At("enc"));
  p.jpegs = Int(j.At("jpeg"));
  p.ofas = Int(j.At("ofa"));
  p.size = Int(j.At("size"));
  p.starts = j.At("starts").Ints();
  return p;
}

ServerLayout ReadServer(const Json& j) {
  ServerLayout s;
  s.machine = j.At("machine").Str();
  s.bus_ids = j.At("bus_ids").Strings();
  s.count = static_cast<int>(s.bus_ids.size());
  s.numa_nodes = j.At("numa_nodes").Ints();
  s.cpus = j.At("cpus").Strings();
  s.pcie_switches = j.At("pcie_switches").Ints();
  for (const Json& row : j.At("nvlink_matrix").Items()) s.nvlink_matrix.push_back(row.Ints());
  s.gpu_numa_nodes = j.At("gpu_numa_nodes").Ints();
  return s;
}

void ReadBoard(const Json& j, Model& m) {
  m.memory_mib = Int(j.At("memory_mib"));
  m.reserved_mib = Int(j.At("reserved_mib"));
  m.bar1_mib = Int(j.At("bar1_mib"));
  m.pci_device_id = Hex32(j.At("pci_device_id"));
  m.pci_subsystem_id = Hex32(j.At("pci_subsystem_id"));
  m.pci_class = static_cast<int>(j.At("pci_class").Int(0x0302));
  m.pcie_gen = Int(j.At("pcie_gen"));
  m.multiprocessors = Int(j.At("multiprocessors"));
  m.remap_banks = Int(j.At("remap_banks"));
  m.fan = j.At("fan").Bool();
  m.ecc = j.At("ecc").Bool(true);
  m.c2c = j.At("c2c").Bool();
  const Json& nvlink = j.At("nvlink");
  m.nvlink_version = Int(nvlink.At("version"));
  m.nvlink_links = Int(nvlink.At("links"));
  m.nvlink_mbps = Int(nvlink.At("mbps"));
  m.nvlink_group = Int(nvlink.At("group"));
  m.vbios = j.At("vbios").Str();
  m.part_number = j.At("part_number").Str();
  m.gpu_part_number = j.At("gpu_part_number").Str();
  const std::vector<std::string> inforom = j.At("inforom").Strings();
  if (inforom.size() == 3) {
    m.inforom_image = inforom[0];
    m.inforom_oem = inforom[1];
    m.inforom_ecc = inforom[2];
  }
}

void ReadReadings(const Json& j, Model& m) {
  const Json& power = j.At("power");
  m.power_default = Int(power.At("default"));
  m.power_min = Int(power.At("min"));
  m.power_max = Int(power.At("max"));
  m.power_idle = Int(power.At("idle"));
  const Json& temperature = j.At("temperature");
  m.temp_idle = Int(temperature.At("idle"));
  m.temp_shutdown = Int(temperature.At("shutdown"));
  m.temp_slowdown = Int(temperature.At("slowdown"));
  m.temp_max = Int(temperature.At("max"));
  m.temp_memory_max = Int(temperature.At("memory_max"));
  m.temp_tlimit = temperature.At("tlimit").Bool();
  const Json& clocks = j.At("clocks");
  m.clock_graphics_max = Int(clocks.At("graphics"));
  m.clock_memory_max = Int(clocks.At("memory"));
  m.clock_video_max = Int(clocks.At("video"));
  m.clock_graphics_app = Int(clocks.At("app"));
  const Json& idle = j.At("idle");
  m.idle_pstate = idle.At("pstate").Str("P0");
  m.clock_graphics_idle = Int(idle.At("graphics"));
  m.clock_memory_idle = Int(idle.At("memory"));
  m.clock_video_idle = Int(idle.At("video"));
}

Model ReadModel(const Json& j) {
  Model m;
  m.id = j.At("id").Str();
  m.aliases = j.At("aliases").Strings();
  m.product = j.At("product").Str();
  m.brand = j.At("brand").Str();
  m.architecture = j.At("architecture").Str();
  const std::vector<int> compute = j.At("compute").Ints();
  if (compute.size() == 2) {
    m.compute_major = compute[0];
    m.compute_minor = compute[1];
  }
  ReadBoard(j, m);
  ReadReadings(j, m);
  const Json& mig = j.At("mig");
  m.mig_memory_slices = Int(mig.At("memory_slices"));
  m.mig_max_instances = Int(mig.At("max_instances"));
  for (const Json& p : mig.At("profiles").Items()) m.mig_profiles.push_back(ReadProfile(p));
  m.server = ReadServer(j.At("server"));
  m.driver = j.At("driver").Str();
  m.cuda = j.At("cuda").Str();
  m.sources = j.At("sources").Strings();
  return m;
}

// Levenshtein distance.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

const MigProfile* Model::FindMigProfile(std::string_view name) const {
  for (const MigProfile& p : mig_profiles) {
    if (p.name == name) return &p;
  }
  return nullptr;
}

Result<ModelCatalogue> ParseCatalogue(std::string_view json) {
  ASSIGN_OR_RETURN(const Json doc, Json::Parse(json));
  ModelCatalogue out;
  std::set<std::string> names;
  for (const Json& entry : doc.At("models").Items()) {
    Model m = ReadModel(entry);
    const size_t count = static_cast<size_t>(m.server.count);
    if (m.id.empty() || m.product.empty() || m.memory_mib <= 0 || count == 0 ||
        m.server.numa_nodes.size() != count || m.server.cpus.size() != count ||
        m.server.pcie_switches.size() != count) {
      return Fail(BadRequest("catalogue: model \"" + m.id + "\" is incomplete"));
    }
    std::vector<std::string> own = m.aliases;
    own.push_back(m.id);
    for (const std::string& name : own) {
      if (!names.insert(Fold(name)).second) {
        return Fail(BadRequest("catalogue: \"" + name + "\" names two models"));
      }
    }
    out.models.push_back(std::move(m));
  }
  if (out.models.empty()) return Fail(BadRequest("catalogue: no models"));
  return out;
}

const ModelCatalogue& Catalogue() {
  static const ModelCatalogue* const kCatalogue = [] {
    Result<ModelCatalogue> parsed = ParseCatalogue(kCatalogueJson);
    CHECK(parsed.has_value());
    return new ModelCatalogue(*std::move(parsed));
  }();
  return *kCatalogue;
}

Result<const Model*> FindModel(std::string_view name) {
  const std::string want = Fold(name);
  for (const Model& m : Catalogue().models) {
    if (Fold(m.id) == want || Fold(m.product) == want ||
        std::ranges::any_of(m.aliases, [&](const auto& a) { return Fold(a) == want; })) {
      return &m;
    }
  }
  std::string message = "unknown GPU model \"" + std::string(name) + "\"";
  const std::vector<std::string> near = NearestModels(name);
  for (size_t i = 0; i < near.size(); ++i) {
    message += (i == 0 ? "; did you mean " : i + 1 < near.size() ? ", " : " or ") + near[i];
  }
  message += near.empty() ? "; `sextant models` lists them" : "?";
  return Fail(BadRequest(message));
}

std::vector<std::string> NearestModels(std::string_view name, size_t most) {
  constexpr size_t kLongestName = 64;
  const std::string want = Fold(name.substr(0, kLongestName));
  // One name per model: its nearest. Half of the name wrong is too far to be meant.
  std::vector<std::pair<size_t, std::string>> found;
  for (const Model& m : Catalogue().models) {
    std::vector<std::string> names = m.aliases;
    names.push_back(m.id);
    const size_t product = Distance(want, Fold(m.product));
    std::pair<size_t, std::string> best{want.size() / 2 + 1, ""};
    for (const std::string& n : names) {
      // A name that begins so is near whatever its length.
      const bool begins = want.size() >= 2 && Fold(n).starts_with(want);
      best = std::min(best, {begins ? 0 : Distance(want, Fold(n)), n});
    }
    // Whoever writes a product's name means that model, which is named as the flags take it.
    if (product < best.first) best = {product, m.id};
    if (!best.second.empty()) found.push_back(std::move(best));
  }
  std::ranges::sort(found);
  std::vector<std::string> out;
  for (auto& [distance, n] : found) {
    if (out.size() < most) out.push_back(std::move(n));
  }
  return out;
}

std::string SanitiseLabel(std::string_view text) {
  std::string out;
  bool blank = false;
  for (const char c : text) {
    if (c == ' ') {
      blank = true;
    } else if (IsAlphanumeric(c) || c == '-' || c == '_' || c == '.') {
      if (blank && !out.empty()) out.push_back('-');
      blank = false;
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace sextant::gpu
