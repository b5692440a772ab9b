// Logging: one line a message on standard error, "I1130 09:47:59.123456 room: text key=value".
// Threads: any. Messages are sentences for a person; never tokens, keys or Pod environment.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace sextant::log {

enum class Level { kDebug, kInfo, kWarning, kError };

void SetLevel(Level level);
bool Enabled(Level level);
void Write(Level level, std::string_view room, std::string_view message);

template <typename... Args>
void Debug(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kDebug))
    Write(Level::kDebug, room, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void Info(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kInfo))
    Write(Level::kInfo, room, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void Warning(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kWarning))
    Write(Level::kWarning, room, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void Error(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kError))
    Write(Level::kError, room, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sextant::log
