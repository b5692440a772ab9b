#include "net/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/base64.h"
#include "net/tls.h"

namespace sextant::net {
namespace {

bool IsUnreserved(char c) {
  return IsAlphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

}  // namespace

Headers::Headers(std::initializer_list<std::pair<std::string_view, std::string_view>> list) {
  list_.reserve(list.size());
  for (const auto& [name, value] : list) Add(name, value);
}

void Headers::Add(std::string_view name, std::string_view value) {
  list_.push_back({AsciiLower(name), std::string(value)});
}

void Headers::Set(std::string_view name, std::string_view value) {
  Remove(name);
  Add(name, value);
}

void Headers::Remove(std::string_view name) {
  std::erase_if(list_, [&](const Header& h) { return EqualsIgnoreCase(h.name, name); });
}

bool Headers::Has(std::string_view name) const {
  return std::any_of(list_.begin(), list_.end(),
                     [&](const Header& h) { return EqualsIgnoreCase(h.name, name); });
}

std::string_view Headers::Get(std::string_view name) const {
  for (const Header& h : list_) {
    if (EqualsIgnoreCase(h.name, name)) return h.value;
  }
  return {};
}

std::vector<std::string_view> Headers::GetAll(std::string_view name) const {
  std::vector<std::string_view> out;
  for (const Header& h : list_) {
    if (EqualsIgnoreCase(h.name, name)) out.push_back(h.value);
  }
  return out;
}

std::vector<std::string_view> Headers::Items(std::string_view name) const {
  std::vector<std::string_view> items;
  for (std::string_view list : GetAll(name)) {
    while (true) {
      const size_t comma = list.find(',');
      std::string_view item = list.substr(0, comma);
      while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
      while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
      if (!item.empty()) items.push_back(item);
      if (comma == std::string_view::npos) break;
      list.remove_prefix(comma + 1);
    }
  }
  return items;
}

bool Headers::HasToken(std::string_view name, std::string_view token) const {
  return std::ranges::any_of(Items(name),
                             [&](std::string_view item) { return EqualsIgnoreCase(item, token); });
}

void Request::SetTarget(std::string as_sent) {
  target = std::move(as_sent);
  const size_t question = target.find('?');
  path = target.substr(0, question);
  query = question == std::string::npos ? "" : target.substr(question + 1);
}

bool Request::IsUpgradeTo(std::string_view protocol) const {
  return http_major == 1 && headers.HasToken("connection", "upgrade") &&
         headers.HasToken("upgrade", protocol);
}

bool Request::IsWebSocketUpgrade() const {
  if (!IsUpgradeTo("websocket") || method != "GET" ||
      headers.Get("sec-websocket-version") != "13") {
    return false;
  }
  const auto key = Base64Decode(headers.Get("sec-websocket-key"));
  return key && key->size() == 16;
}

std::vector<std::string> Request::WebSocketProtocols() const {
  const std::vector<std::string_view> items = headers.Items("sec-websocket-protocol");
  return {items.begin(), items.end()};
}

Result<std::string> PercentDecode(std::string_view text, bool plus) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return Fail(BadRequest(fmt::format("invalid URL escape \"{}\"", text.substr(i, 3))));
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += plus && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string PercentEncode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    if (IsUnreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> out;
  while (!query.empty()) {
    const size_t amp = query.find('&');
    const std::string_view item = query.substr(0, amp);
    query = amp == std::string_view::npos ? std::string_view{} : query.substr(amp + 1);
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    ASSIGN_OR_RETURN(std::string name, PercentDecode(item.substr(0, equals), true));
    std::string value;
    if (equals != std::string_view::npos) {
      ASSIGN_OR_RETURN(value, PercentDecode(item.substr(equals + 1), true));
    }
    out.emplace_back(std::move(name), std::move(value));
  }
  return out;
}

std::string_view StatusText(int status) {
  struct Entry {
    int status;
    std::string_view text;
  };
  static constexpr Entry kEntries[] = {
      {100, "Continue"},
      {101, "Switching Protocols"},
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {206, "Partial Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Request Entity Too Large"},
      {414, "Request URI Too Long"},
      {415, "Unsupported Media Type"},
      {416, "Requested Range Not Satisfiable"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Entity"},
      {426, "Upgrade Required"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  };
  for (const Entry& entry : kEntries) {
    if (entry.status == status) return entry.text;
  }
  return {};
}

std::string Url::HostPort() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

namespace {

uint16_t DefaultPort(std::string_view scheme) {
  if (scheme == "https" || scheme == "wss") return 443;
  if (scheme == "http" || scheme == "ws") return 80;
  return 0;
}

// "host", "host:port", "[v6]", "[v6]:port".
Status ParseAuthority(std::string_view authority, std::string_view text, Url& url) {
  const auto bad = [&](std::string_view why) {
    return Fail(BadRequest(fmt::format("the URL \"{}\" {}", text, why)));
  };
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) return bad("has '[' without ']'");
    url.host = std::string(authority.substr(1, close - 1));
    const std::string_view rest = authority.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return bad("has text after ']'");
    if (!rest.empty()) port = rest.substr(1);
  } else {
    const size_t colon = authority.find(':');
    url.host = std::string(authority.substr(0, colon));
    if (colon != std::string_view::npos) port = authority.substr(colon + 1);
  }
  if (url.host.empty()) return bad("has no host");
  for (char c : url.host) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '@' || c == '\x7f')
      return bad("has a bad host");
  }
  if (port.empty()) return {};
  unsigned value = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
  if (error != std::errc{} || end != port.data() + port.size() || value == 0 || value > 65535) {
    return bad("has a bad port");
  }
  url.port = static_cast<uint16_t>(value);
  return {};
}

}  // namespace

Result<Url> ParseUrl(std::string_view text) {
  Url url;
  const size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) {
    return Fail(BadRequest(fmt::format("the URL \"{}\" has no scheme", text)));
  }
  url.scheme = AsciiLower(text.substr(0, scheme_end));
  std::string_view rest = text.substr(scheme_end + 3);
  if (url.scheme == "unix") {
    if (rest.empty()) return Fail(BadRequest("the URL \"unix://\" has no path"));
    url.path = std::string(rest);
    return url;
  }
  url.port = DefaultPort(url.scheme);
  if (url.port == 0) {
    return Fail(BadRequest(fmt::format("the URL \"{}\" has an unknown scheme", text)));
  }
  rest = rest.substr(0, rest.find('#'));
  const size_t authority_end = rest.find_first_of("/?");
  RETURN_IF_ERROR(ParseAuthority(rest.substr(0, authority_end), text, url));
  if (authority_end == std::string_view::npos) return url;
  rest.remove_prefix(authority_end);
  const size_t question = rest.find('?');
  url.path = std::string(rest.substr(0, question));
  if (question != std::string_view::npos) url.query = std::string(rest.substr(question + 1));
  return url;
}

}  // namespace sextant::net
