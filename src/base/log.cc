#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <memory>

namespace sextant::log {
namespace {

spdlog::level::level_enum ToSpdlog(Level level) {
  static constexpr std::array kLevels = {spdlog::level::debug, spdlog::level::info,
                                         spdlog::level::warn, spdlog::level::err};
  return kLevels[static_cast<size_t>(level)];
}

// Never destroyed: threads may log until the process is gone.
spdlog::logger& Logger() {
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger("sextant", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%L%m%d %T.%f %v");
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *logger;
}

// One line a message, whatever came from outside: control characters are escaped.
void AppendLine(std::string& out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
}

}  // namespace

void SetLevel(Level level) { Logger().set_level(ToSpdlog(level)); }

bool Enabled(Level level) { return Logger().should_log(ToSpdlog(level)); }

void Write(Level level, std::string_view room, std::string_view message) {
  if (!Enabled(level)) return;
  std::string line;
  line.reserve(room.size() + message.size() + 2);
  AppendLine(line, room);
  line += ": ";
  AppendLine(line, message);
  Logger().log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace sextant::log
