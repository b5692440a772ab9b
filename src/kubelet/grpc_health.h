// The bytes of grpc.health.v1.Health/Check and what gRPC puts around them. Pure.
// Source: grpc/health/v1/health.proto; gRPC over HTTP/2 (PROTOCOL-HTTP2.md).
#pragma once

#include <string>
#include <string_view>

#include "kubelet/process_exchange.h"

namespace sextant::kubelet {

inline constexpr int kGrpcUnknown = 2;
inline constexpr int kGrpcUnimplemented = 12;

struct GrpcStatus {
  int code = 0;  // 0: OK
  std::string message;
};

std::string HealthRequest(std::string_view service);
std::string GrpcMessage(std::string_view bytes);  // with its prefix of five bytes
// How the call ended: grpc-status of the trailers, or of an answer that is nothing else.
GrpcStatus StatusOf(const ExchangeAnswer& answer);
std::string_view GrpcCodeName(int code);  // "NotFound", as Go prints it
// "SERVING", ... of the message in an answer's body; a number where it has no name.
std::string HealthOf(std::string_view body);

}  // namespace sextant::kubelet
