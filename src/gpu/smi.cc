// The command line of nvidia-smi.
#include "gpu/smi.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/nearest.h"
#include "gpu/smi_views.h"

namespace sextant::gpu {
namespace {

using smi::CsvFormat;
using smi::CsvKind;
using smi::Scene;

// nvidia-smi(1), "RETURN VALUE".
enum Code { kFine = 0, kBadArgument = 2, kNotSupported = 3, kNotFound = 6, kLost = 15 };

constexpr std::string_view kSeeHelp = "Please run 'nvidia-smi -h' for help.";
constexpr int kMaxLoopMs = 24 * 3600 * 1000;

struct Options {
  bool list = false, query = false, xml = false, help = false, version = false;
  std::optional<std::string> id, display, format, filename;
  std::optional<CsvKind> csv, csv_help;
  std::string fields;
  std::vector<std::string> topic;  // "topo -m" and the like
  int loop_ms = 0;
};

struct Refusal {
  std::string text;
  int code = kBadArgument;
};
template <typename T>
using OrRefusal = std::expected<T, Refusal>;

std::unexpected<Refusal> Refuse(std::string text, int code = kBadArgument) {
  return std::unexpected(Refusal{std::move(text), code});
}

// An option with a value: "-i 0", "-i=0", "--id=0", "--id 0".
struct ValueOption {
  std::string_view brief, full;
};
constexpr ValueOption kId = {"-i", "--id"};
constexpr ValueOption kDisplay = {"-d", "--display"};
constexpr ValueOption kFilename = {"-f", "--filename"};
constexpr ValueOption kLoop = {"-l", "--loop"};
constexpr ValueOption kLoopMs = {"-lms", "--loop-ms"};
constexpr ValueOption kFormat = {"", "--format"};

struct CsvSwitch {
  std::string_view query, help;
  CsvKind kind;
};
constexpr auto kCsvSwitches = std::to_array<CsvSwitch>({
    {"--query-gpu", "--help-query-gpu", CsvKind::kGpu},
    {"--query-compute-apps", "--help-query-compute-apps", CsvKind::kComputeApps},
    {"--query-accounted-apps", "--help-query-accounted-apps", CsvKind::kAccountedApps},
    {"--query-retired-pages", "--help-query-retired-pages", CsvKind::kRetiredPages},
    {"--query-remapped-rows", "--help-query-remapped-rows", CsvKind::kRemappedRows},
});

// Options and subcommands of the real program that are not simulated: what shows, and what changes.
constexpr auto kShowing = std::to_array<std::string_view>({"-B",
                                                           "--list-excluded-gpus",
                                                           "-col",
                                                           "--columns",
                                                           "-u",
                                                           "--unit",
                                                           "--dtd",
                                                           "--query-supported-clocks",
                                                           "--help-query-supported-clocks",
                                                           "--get-hostname",
                                                           "-eow",
                                                           "--error-on-warning",
                                                           "--debug",
                                                           "dmon",
                                                           "daemon",
                                                           "replay",
                                                           "pmon",
                                                           "c2c",
                                                           "clocks",
                                                           "encodersessions",
                                                           "fbcsessions",
                                                           "vgpu",
                                                           "gpm",
                                                           "pci",
                                                           "rusd",
                                                           "prm",
                                                           "soc"});
constexpr auto kChanging = std::to_array<std::string_view>({"-pm",
                                                            "--persistence-mode",
                                                            "-e",
                                                            "--ecc-config",
                                                            "-p",
                                                            "--reset-ecc-errors",
                                                            "-c",
                                                            "--compute-mode",
                                                            "--gom",
                                                            "-r",
                                                            "--gpu-reset",
                                                            "-vm",
                                                            "--virt-mode",
                                                            "-lgc",
                                                            "--lock-gpu-clocks",
                                                            "-m",
                                                            "--mode",
                                                            "-rgc",
                                                            "--reset-gpu-clocks",
                                                            "-lmc",
                                                            "--lock-memory-clocks",
                                                            "-rmc",
                                                            "--reset-memory-clocks",
                                                            "-lmcd",
                                                            "-rmcd",
                                                            "-ac",
                                                            "--applications-clocks",
                                                            "-rac",
                                                            "--reset-applications-clocks",
                                                            "-pl",
                                                            "--power-limit",
                                                            "-sc",
                                                            "--scope",
                                                            "-cc",
                                                            "--cuda-clocks",
                                                            "-am",
                                                            "--accounting-mode",
                                                            "-caa",
                                                            "--clear-accounted-apps",
                                                            "--auto-boost-default",
                                                            "--auto-boost-permission",
                                                            "-mig",
                                                            "--multi-instance-gpu",
                                                            "-gtt",
                                                            "--gpu-target-temp",
                                                            "-den",
                                                            "--dram-encryption",
                                                            "--set-hostname",
                                                            "-t",
                                                            "--toggle-led",
                                                            "drain",
                                                            "compute-policy",
                                                            "boost-slider",
                                                            "power-hint",
                                                            "base-clocks",
                                                            "conf-compute",
                                                            "power-smoothing",
                                                            "power-profiles"});
// The long names that this program answers.
constexpr auto kAnswered = std::to_array<std::string_view>({"--help",
                                                            "--list-gpus",
                                                            "--query",
                                                            "--xml-format",
                                                            "--version",
                                                            "--id",
                                                            "--display",
                                                            "--filename",
                                                            "--loop",
                                                            "--loop-ms",
                                                            "--format",
                                                            "--query-gpu",
                                                            "--help-query-gpu",
                                                            "--query-compute-apps",
                                                            "--help-query-compute-apps",
                                                            "--query-accounted-apps",
                                                            "--query-retired-pages",
                                                            "--query-remapped-rows",
                                                            "topo",
                                                            "nvlink",
                                                            "mig"});

// Why an argument that is none of this program's is refused.
Refusal Unknown(std::string_view arg) {
  const std::string_view name = arg.substr(0, arg.find('='));
  if (std::ranges::find(kChanging, name) != kChanging.end()) {
    return {fmt::format("\"{}\" is not available on simulated GPUs: change the pool or the card "
                        "through the lab instead.\n",
                        name),
            kNotSupported};
  }
  if (std::ranges::find(kShowing, name) != kShowing.end()) {
    return {fmt::format("\"{}\" is not available on simulated GPUs: the table, -q and --query-gpu, "
                        "with -l again and again, are.\n",
                        name),
            kNotSupported};
  }
  std::vector<std::string> names(kAnswered.begin(), kAnswered.end());
  names.insert(names.end(), kShowing.begin(), kShowing.end());
  names.insert(names.end(), kChanging.begin(), kChanging.end());
  const std::string nearest = name.size() > 2 ? Nearest(name, names) : "";
  return {fmt::format("ERROR: Option {} is not recognized. {}\n{}\n", arg, kSeeHelp,
                      nearest.empty() ? "" : fmt::format("Did you mean {}?\n", nearest)),
          kBadArgument};
}

class Parser {
 public:
  explicit Parser(std::span<const std::string> args) : args_(args) {}

  OrRefusal<Options> Run() {
    while (at_ < args_.size()) {
      const std::string arg = args_[at_];
      if (at_ == 0 && (arg == "topo" || arg == "nvlink" || arg == "mig")) {
        options_.topic.push_back(arg);
        ++at_;
        continue;
      }
      if (auto done = One(arg); !done) return std::unexpected(done.error());
    }
    return options_;
  }

 private:
  using Done = OrRefusal<bool>;  // whether the argument was the one asked about

  Done One(const std::string& arg) {
    if (!options_.topic.empty() && arg != "-i" && !arg.starts_with("-i=") &&
        !arg.starts_with("--id")) {
      options_.topic.push_back(arg);
      ++at_;
      return true;
    }
    if (Flag(arg, "-h", "--help", options_.help) || Flag(arg, "-L", "--list-gpus", options_.list) ||
        Flag(arg, "-q", "--query", options_.query) ||
        Flag(arg, "-x", "--xml-format", options_.xml) ||
        Flag(arg, "--version", "--version", options_.version)) {
      return true;
    }
    for (const CsvSwitch& s : kCsvSwitches) {
      if (arg == s.help) {
        options_.csv_help = s.kind;
        ++at_;
        return true;
      }
      Done done = Query(s, arg);
      if (!done || *done) return done;
    }
    return WithValue(arg);
  }

  bool Flag(std::string_view arg, std::string_view brief, std::string_view full, bool& flag) {
    if (arg != brief && arg != full) return false;
    flag = true;
    ++at_;
    return true;
  }

  // True when `arg` is this option; then its value is taken.
  OrRefusal<std::optional<std::string>> Value(const ValueOption& option, std::string_view arg) {
    for (const std::string_view name : {option.brief, option.full}) {
      if (name.empty()) continue;
      if (arg.size() > name.size() && arg.starts_with(name) && arg[name.size()] == '=') {
        ++at_;
        return std::string(arg.substr(name.size() + 1));
      }
      if (arg != name) continue;
      if (at_ + 1 >= args_.size()) {
        return Refuse(fmt::format("ERROR: Option {} is missing its value. {}\n\n", arg, kSeeHelp));
      }
      at_ += 2;
      return args_[at_ - 1];
    }
    return std::nullopt;
  }

  Done Query(const CsvSwitch& s, const std::string& arg) {
    auto value = Value({"", s.query}, arg);
    if (!value) return std::unexpected(value.error());
    if (!*value) return false;
    if (options_.csv) return Refuse("Only one --query-* switch can be used at a time.\n\n");
    options_.csv = s.kind;
    options_.fields = **value;
    return true;
  }

  Done WithValue(const std::string& arg) {
    const std::pair<const ValueOption*, std::optional<std::string>*> texts[] = {
        {&kId, &options_.id},
        {&kDisplay, &options_.display},
        {&kFormat, &options_.format},
        {&kFilename, &options_.filename},
    };
    for (const auto& [option, target] : texts) {
      auto value = Value(*option, arg);
      if (!value) return std::unexpected(value.error());
      if (*value) {
        *target = std::move(*value);
        return true;
      }
    }
    for (const bool seconds : {true, false}) {
      Done done = Loop(arg, seconds);
      if (!done || *done) return done;
    }
    return std::unexpected(Unknown(arg));
  }

  Done Loop(const std::string& arg, bool seconds) {
    const ValueOption& option = seconds ? kLoop : kLoopMs;
    // A bare -l means every five seconds.
    const bool bare =
        arg == option.brief && (at_ + 1 >= args_.size() || args_[at_ + 1].starts_with("-"));
    if (seconds && bare) {
      options_.loop_ms = 5000;
      ++at_;
      return true;
    }
    auto value = Value(option, arg);
    if (!value) return std::unexpected(value.error());
    if (!*value) return false;
    const std::string& text = **value;
    int number = 0;
    const auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
    const int limit = seconds ? kMaxLoopMs / 1000 : kMaxLoopMs;
    if (ec != std::errc() || ptr != text.data() + text.size() || number < 1 || number > limit) {
      return Refuse(fmt::format("Invalid combination of input arguments. {}\n\n", kSeeHelp));
    }
    options_.loop_ms = seconds ? number * 1000 : number;
    return true;
  }

  std::span<const std::string> args_;
  size_t at_ = 0;
  Options options_;
};

bool SameBusId(std::string_view a, std::string_view b) {
  // "0000:07:00.0" and "07:00.0" mean the card of "00000000:07:00.0".
  if (a.size() < b.size()) b.remove_prefix(b.size() - a.size());
  return a.size() >= 7 && std::ranges::equal(
                              a, b, {}, [](char c) { return c >= 'a' && c <= 'f' ? c - 32 : c; },
                              [](char c) { return static_cast<int>(c); });
}

bool Names(std::string_view id, const Card& card) {
  return id == std::to_string(card.index) || id == card.uuid || id == card.serial ||
         SameBusId(id, card.bus_id);
}

// The cards that -i leaves. A card off the bus is named in `lost` instead.
std::vector<const Card*> Select(const Inventory& visible, const std::optional<std::string>& ids,
                                std::string& lost) {
  std::vector<const Card*> out;
  for (const Card& card : visible.cards) {
    bool wanted = !ids;
    for (std::string_view rest = ids ? std::string_view(*ids) : ""; !wanted && !rest.empty();) {
      const size_t comma = rest.find(',');
      wanted = Names(rest.substr(0, comma), card);
      rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    }
    if (!wanted) continue;
    if (card.lost) {
      lost += fmt::format("Unable to determine the device handle for GPU{}: {}: Unknown Error\n",
                          card.index, card.bus_id.substr(std::min<size_t>(4, card.bus_id.size())));
    } else {
      out.push_back(&card);
    }
  }
  return out;
}

std::string Help(const Inventory& visible) {
  return fmt::format(
      "NVIDIA System Management Interface -- v{}\n"
      "Simulated by Sextant: it shows simulated cards in the layouts of the real program.\n\n"
      "nvidia-smi [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...\n\n"
      "    <no arguments>              Show a summary of the GPUs.\n"
      "    -L,   --list-gpus           List the GPUs and their UUIDs.\n"
      "    -q,   --query               Show everything about the GPUs.\n"
      "    -x,   --xml-format          With -q: as XML.\n"
      "    -d,   --display=            With -q: only these parts, for example MEMORY,ECC.\n"
      "    -i,   --id=                 Only these GPUs: index, UUID, serial or bus id.\n"
      "    -f,   --filename=           Write to a file instead.\n"
      "    -l,   --loop=               Repeat every so many seconds.\n"
      "    -lms, --loop-ms=            Repeat every so many milliseconds.\n"
      "    --query-gpu=                Chosen properties; see --help-query-gpu.\n"
      "    --query-compute-apps=       Processes; see --help-query-compute-apps.\n"
      "    --query-accounted-apps=     Accounted processes.\n"
      "    --query-retired-pages=      Retired pages.\n"
      "    --query-remapped-rows=      Remapped rows.\n"
      "    --format=                   csv[,noheader][,nounits], needed by --query-...\n"
      "    --version                   Show versions.\n"
      "    -h,   --help                Show this text.\n\n"
      "    topo -m                     How the GPUs are joined.\n"
      "    nvlink -s                   State of the NVLinks.\n"
      "    mig -lgip | -lgipp | -lgi   MIG profiles, their places, GPU instances.\n",
      visible.driver_version);
}

std::string Version(const Inventory& visible) {
  const std::string& driver = visible.driver_version;
  const size_t last = driver.rfind('.');
  // The library leaves out the last part: 590.48.01 is NVML 590.48.
  const std::string nvml = last != driver.find('.') ? driver.substr(0, last) : driver;
  return fmt::format(
      "NVIDIA-SMI version  : {}\nNVML version        : {}\nDRIVER version      : {}\n"
      "CUDA Version        : {}\nSimulated by        : Sextant\n",
      driver, nvml, driver, visible.cuda_version);
}

OrRefusal<CsvFormat> ReadFormat(const std::optional<std::string>& text) {
  const auto missing = [] {
    return Refuse(fmt::format("\"--format=\" switch is missing. {}\n\n", kSeeHelp));
  };
  if (!text) return missing();
  CsvFormat out;
  bool csv = false;
  for (std::string_view rest = *text; !rest.empty();) {
    const size_t comma = rest.find(',');
    std::string_view word = rest.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    if (word == "csv") {
      csv = true;
    } else if (word == "noheader") {
      out.header = false;
    } else if (word == "nounits") {
      out.units = false;
    } else {
      return Refuse(fmt::format("Invalid combination of input arguments. {}\n\n", kSeeHelp));
    }
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  if (!csv) return missing();
  return out;
}

OrRefusal<std::string> Topic(const Scene& scene, const std::vector<std::string>& words) {
  const std::string second = words.size() == 2 ? words[1] : "";
  if (words[0] == "topo" && (second == "-m" || second == "--matrix")) return smi::Topology(scene);
  if (words[0] == "nvlink" && (second == "-s" || second == "--status")) {
    return smi::NvLinkStatus(scene);
  }
  if (words[0] == "mig") {
    const bool profiles = second == "-lgip" || second == "--list-gpu-instance-profiles";
    const bool places = second == "-lgipp" || second == "--list-gpu-instance-possible-placements";
    const bool instances = second == "-lgi" || second == "--list-gpu-instances";
    std::string text = profiles    ? smi::MigProfiles(scene)
                       : places    ? smi::MigPlacements(scene)
                       : instances ? smi::MigInstances(scene)
                                   : "";
    if (text.starts_with("No ")) return Refuse(text, kNotFound);
    if (!text.empty()) return text;
  }
  return Refuse(fmt::format("\"{}\" is not available on simulated GPUs.\n", fmt::join(words, " ")),
                kNotSupported);
}

OrRefusal<std::string> Show(const Scene& scene, const Options& o) {
  if (!o.topic.empty()) return Topic(scene, o.topic);
  if (o.csv) {
    auto format = ReadFormat(o.format);
    if (!format) return std::unexpected(format.error());
    Result<std::string> out = smi::Csv(scene, *o.csv, o.fields, *format);
    if (!out) return Refuse(out.error().message);
    return *std::move(out);
  }
  if (o.list) return smi::List(scene);
  if (o.query && o.xml) return smi::QueryXml(scene);
  if (o.query) {
    const unsigned sections = o.display ? smi::ParseSections(*o.display) : smi::kAllSections;
    if (sections == 0) {
      return Refuse(fmt::format("Invalid combination of input arguments. {}\n\n", kSeeHelp));
    }
    return smi::QueryText(scene, sections);
  }
  if (o.xml || o.display || o.format) {
    return Refuse(fmt::format("Invalid combination of input arguments. {}\n\n", kSeeHelp));
  }
  return smi::Table(scene);
}

}  // namespace

SmiResult RunSmi(const Inventory& visible, std::span<const std::string> args, const SmiTime& now) {
  SmiResult result;
  OrRefusal<Options> options = Parser(args).Run();
  if (!options) return {.out = options.error().text, .code = options.error().code};
  if (options->help) return {.out = Help(visible)};
  if (options->version) return {.out = Version(visible)};
  if (options->csv_help) return {.out = smi::CsvHelp(*options->csv_help)};
  if (options->csv) {
    // A wrong question is answered as such even where there is no card.
    const Scene nothing{&visible, {}, now};
    if (auto asked = Show(nothing, *options); !asked) {
      return {.out = asked.error().text, .code = asked.error().code};
    }
  }
  Scene scene{&visible, {}, now};
  std::string lost;
  scene.cards = Select(visible, options->id, lost);
  if (scene.cards.empty()) {
    return {.out = lost + "No devices were found\n", .code = lost.empty() ? kNotFound : kLost};
  }
  OrRefusal<std::string> shown = Show(scene, *options);
  if (!shown) return {.out = lost + shown.error().text, .code = shown.error().code};
  result.out = lost + *std::move(shown);
  result.code = lost.empty() ? kFine : kLost;
  result.file = options->filename.value_or("");
  result.loop_ms = options->loop_ms;
  return result;
}

}  // namespace sextant::gpu
