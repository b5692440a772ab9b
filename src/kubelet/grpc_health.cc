#include "kubelet/grpc_health.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace sextant::kubelet {
namespace {

constexpr size_t kPrefix = 5;       // compressed or not, then the length
constexpr char kServiceTag = 0x0a;  // field 1, a string
constexpr char kStatusTag = 0x08;   // field 1, a varint

constexpr std::array<std::string_view, 17> kCodes = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};
constexpr std::array<std::string_view, 4> kHealth = {"UNKNOWN", "SERVING", "NOT_SERVING",
                                                     "SERVICE_UNKNOWN"};

// False at the end of the bytes.
bool TakeVarint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

}  // namespace

std::string HealthRequest(std::string_view service) {
  if (service.empty()) return {};
  std::string out(1, kServiceTag);
  size_t size = service.size();
  for (; size > 0x7f; size >>= 7) out += static_cast<char>(0x80 | (size & 0x7f));
  out += static_cast<char>(size);
  out += service;
  return out;
}

std::string GrpcMessage(std::string_view bytes) {
  std::string out(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(bytes.size() >> shift);
  out += bytes;
  return out;
}

GrpcStatus StatusOf(const ExchangeAnswer& answer) {
  const net::Headers& from = answer.trailers.Has("grpc-status") ? answer.trailers : answer.headers;
  if (!from.Has("grpc-status")) {
    if (answer.status == 200) return {};
    return {answer.status == 404 ? kGrpcUnimplemented : kGrpcUnknown,
            fmt::format("unexpected HTTP status code received from server: {} ({})", answer.status,
                        net::StatusText(answer.status))};
  }
  const std::string_view text = from.Get("grpc-status");
  GrpcStatus status;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), status.code);
  if (error != std::errc{} || end != text.data() + text.size()) status.code = kGrpcUnknown;
  const std::string_view message = from.Get("grpc-message");
  status.message = net::PercentDecode(message).value_or(std::string(message));
  return status;
}

std::string_view GrpcCodeName(int code) {
  if (code < 0 || code >= static_cast<int>(kCodes.size())) return "Unknown";
  return kCodes[static_cast<size_t>(code)];
}

std::string HealthOf(std::string_view body) {
  uint64_t status = 0;
  body.remove_prefix(std::min(body.size(), kPrefix));
  // Field 1 is all there is; an empty message is its zero.
  if (body.starts_with(kStatusTag)) {
    body.remove_prefix(1);
    if (!TakeVarint(body, status)) status = 0;
  }
  return status < kHealth.size() ? std::string(kHealth[status]) : std::to_string(status);
}

}  // namespace sextant::kubelet
