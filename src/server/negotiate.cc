#include "server/negotiate.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/ascii.h"
#include "net/http.h"

namespace sextant::server {
namespace {

constexpr size_t kMaxRanges = 64;
constexpr std::string_view kNoRepresentation =
    "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf";

constexpr std::string_view kAcceptedText =
    "only the following media types are accepted: application/json, application/yaml";

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The next piece up to `separator`, taken off the front.
std::string_view Take(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view piece = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return Trim(piece);
}

MediaRange ParseRange(std::string_view text) {
  MediaRange range;
  range.type = AsciiLower(Take(text, ';'));
  while (!text.empty()) {
    std::string_view parameter = Take(text, ';');
    const std::string name = AsciiLower(Take(parameter, '='));
    std::string_view value = Trim(parameter);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    if (name == "q") {
      range.q = std::strtod(std::string(value).c_str(), nullptr);
    } else {
      range.parameters.emplace_back(name, value);
    }
  }
  return range;
}

struct Served {
  std::string_view type;
  Media media;
};
constexpr std::array<Served, 3> kServed = {
    {{"application/json", Media::kJson},
     {"application/yaml", Media::kYaml},
     {"application/vnd.kubernetes.protobuf", Media::kProtobuf}}};

bool Covers(std::string_view range, std::string_view type) {
  if (range == "*/*" || range == type) return true;
  return range.ends_with("/*") && type.starts_with(range.substr(0, range.size() - 1));
}

// False if the range asks for something that is not served (another `as`, a stream, a group).
bool ReadAs(const MediaRange& range, Form& form) {
  const std::string_view as = range.Get("as");
  if (as.empty()) return true;
  const std::string_view version = range.Get("v");
  if (range.Get("g") != "meta.k8s.io" || (version != "v1" && version != "v1beta1")) return false;
  if (as == "Table") {
    form.as = As::kTable;
    if (form.media == Media::kProtobuf) return false;
  } else if (as == "PartialObjectMetadata") {
    form.as = As::kPartial;
  } else if (as == "PartialObjectMetadataList") {
    form.as = As::kPartialList;
  } else {
    return false;
  }
  form.as_version = version;
  return true;
}

}  // namespace

std::string_view MediaRange::Get(std::string_view name) const {
  for (const auto& [key, value] : parameters)
    if (key == name) return value;
  return {};
}

std::vector<MediaRange> ParseAccept(std::string_view accept) {
  std::vector<MediaRange> ranges;
  while (!accept.empty() && ranges.size() < kMaxRanges) {
    const std::string_view piece = Take(accept, ',');
    if (!piece.empty()) ranges.push_back(ParseRange(piece));
  }
  // Insertion keeps the order of equals; std::stable_sort's temporary buffer is deprecated.
  for (size_t i = 1; i < ranges.size(); ++i) {
    for (size_t j = i; j > 0 && ranges[j].q > ranges[j - 1].q; --j) {
      std::swap(ranges[j], ranges[j - 1]);
    }
  }
  return ranges;
}

std::string Form::ContentType() const {
  for (const Served& served : kServed)
    if (served.media == media) return std::string(served.type);
  return "application/json";
}

std::string Form::StreamContentType() const {
  if (media == Media::kProtobuf) return ContentType() + ";stream=watch";
  return ContentType();
}

Result<Form> Negotiate(std::string_view accept, bool pretty, bool protobuf) {
  Form form;
  form.pretty = pretty;
  const std::vector<MediaRange> ranges = ParseAccept(accept);
  if (ranges.empty()) return form;
  // The real server's router looks first, and knows no other range than that of everything.
  const bool routed = std::ranges::any_of(ranges, [](const MediaRange& range) {
    return range.type == "*/*" ||
           std::ranges::any_of(kServed, [&](const Served& s) { return s.type == range.type; });
  });
  if (!routed) {
    Error error = NotAcceptable(kNoRepresentation);
    error.empty_details = true;
    return Fail(std::move(error));
  }
  for (const MediaRange& range : ranges) {
    for (const Served& served : kServed) {
      if (!Covers(range.type, served.type)) continue;
      Form candidate = form;
      candidate.media = served.media;
      if (!ReadAs(range, candidate)) continue;
      if (candidate.media == Media::kProtobuf && candidate.as == As::kObject && !protobuf) continue;
      return candidate;
    }
  }
  return Fail(NotAcceptable(protobuf ? kAcceptedMedia : kAcceptedText));
}

}  // namespace sextant::server
