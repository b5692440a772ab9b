#include "kubelet/probes.h"

#include <fmt/format.h>

#include <algorithm>

namespace sextant::kubelet {
namespace {

using api::Value;

Duration Seconds(Value value, int64_t otherwise) {
  return std::chrono::seconds(std::max<int64_t>(value.AsInt(otherwise), 0));
}

const char* SpecKey(Prober::Kind kind) {
  switch (kind) {
    case Prober::Kind::kStartup:
      return "startupProbe";
    case Prober::Kind::kLiveness:
      return "livenessProbe";
    case Prober::Kind::kReadiness:
      return "readinessProbe";
  }
  return "";
}

}  // namespace

std::string_view Name(Prober::Kind kind) {
  switch (kind) {
    case Prober::Kind::kStartup:
      return "Startup";
    case Prober::Kind::kLiveness:
      return "Liveness";
    case Prober::Kind::kReadiness:
      return "Readiness";
  }
  return "";
}

uint16_t ResolvePort(Value port, Value container) {
  const auto valid = [](int64_t number) {
    return number > 0 && number < 65536 ? static_cast<uint16_t>(number) : uint16_t{0};
  };
  if (port.IsInt()) return valid(port.AsInt());
  for (Value known : container["ports"].items())
    if (known["name"].AsString() == port.AsString()) return valid(known["containerPort"].AsInt());
  return valid(std::atoll(std::string(port.AsString()).c_str()));
}

HttpProbe HttpProbeOf(Value http_get, Value container, const std::string& id, Duration timeout) {
  HttpProbe probe;
  probe.container_id = id;
  probe.host = http_get["host"].AsString();
  probe.port = ResolvePort(http_get["port"], container);
  probe.scheme = http_get["scheme"].AsString("HTTP");
  probe.path = http_get["path"].AsString("/");
  if (!probe.path.starts_with('/')) probe.path.insert(0, "/");
  for (Value header : http_get["httpHeaders"].items())
    probe.headers.emplace_back(header["name"].AsString(), header["value"].AsString());
  probe.timeout = timeout;
  return probe;
}

// One probe's rhythm and its results so far.
struct Prober::Beat {
  Kind kind = Kind::kLiveness;
  Value spec;
  TimerId timer = 0;
  bool in_flight = false;
  bool ended = false;
  bool last = false;
  int run = 0;
};

Prober::Prober(Loop& loop, Runtime& runtime, api::Object pod, Value container,
               std::string container_id, Callbacks callbacks)
    : loop_(loop),
      runtime_(runtime),
      pod_(std::move(pod)),
      container_(container),
      id_(std::move(container_id)),
      callbacks_(std::move(callbacks)) {}

Prober::~Prober() {
  *alive_ = false;
  for (const auto& beat : beats_) loop_.Cancel(beat->timer);
}

void Prober::Start() {
  if (has_startup()) return Begin(Kind::kStartup);
  Begin(Kind::kLiveness);
  Begin(Kind::kReadiness);
}

void Prober::Begin(Kind kind) {
  const Value spec = container_[SpecKey(kind)];
  if (!spec) return;
  auto beat = std::make_shared<Beat>();
  beat->kind = kind;
  beat->spec = spec;
  beats_.push_back(beat);
  beat->timer = loop_.After(Seconds(spec["initialDelaySeconds"], 0), [this, alive = alive_, beat] {
    if (*alive) Probe(beat);
  });
}

void Prober::Probe(const std::shared_ptr<Beat>& beat) {
  if (beat->ended) return;
  const Value spec = beat->spec;
  const Duration period =
      std::max(Seconds(spec["periodSeconds"], 10), Duration(std::chrono::seconds(1)));
  beat->timer = loop_.After(period, [this, alive = alive_, beat] {
    if (*alive) Probe(beat);
  });
  if (beat->in_flight) return;
  beat->in_flight = true;
  const Duration timeout =
      std::max(Seconds(spec["timeoutSeconds"], 1), Duration(std::chrono::seconds(1)));
  const auto done = [this, alive = alive_, beat](ProbeResult result) {
    if (*alive) OnResult(beat, std::move(result));
  };
  if (const Value exec = spec["exec"]) {
    ExecProbe probe{id_, {}, timeout};
    for (Value word : exec["command"].items()) probe.argv.emplace_back(word.AsString());
    runtime_.Probe(std::move(probe), done);
  } else if (const Value http = spec["httpGet"]) {
    runtime_.Probe(HttpProbeOf(http, container_, id_, timeout), done);
  } else if (const Value tcp = spec["tcpSocket"]) {
    runtime_.Probe(TcpProbe{id_, std::string(tcp["host"].AsString()),
                            ResolvePort(tcp["port"], container_), timeout},
                   done);
  } else if (const Value grpc = spec["grpc"]) {
    runtime_.Probe(GrpcProbe{id_, ResolvePort(grpc["port"], container_),
                             std::string(grpc["service"].AsString()), timeout},
                   done);
  } else {
    loop_.Post([done] { done({false, "missing probe handler"}); });
  }
}

void Prober::OnResult(const std::shared_ptr<Beat>& beat, ProbeResult result) {
  beat->in_flight = false;
  if (beat->ended) return;
  if (!result.success) callbacks_.on_unhealthy(beat->kind, result.output);
  if (beat->run > 0 && beat->last == result.success) {
    ++beat->run;
  } else {
    beat->last = result.success;
    beat->run = 1;
  }
  const int64_t threshold = result.success ? beat->spec["successThreshold"].AsInt(1)
                                           : beat->spec["failureThreshold"].AsInt(3);
  if (beat->run >= threshold) Decide(beat, result.success);
}

void Prober::Decide(const std::shared_ptr<Beat>& beat, bool success) {
  const auto alive = alive_;
  if (beat->kind == Kind::kReadiness) return callbacks_.on_ready(success);
  if (beat->kind == Kind::kLiveness && success) return;
  beat->ended = true;  // until there is a new container
  loop_.Cancel(beat->timer);
  if (!success) return callbacks_.on_failed(beat->kind);
  callbacks_.on_started();
  if (!*alive) return;
  Begin(Kind::kLiveness);
  Begin(Kind::kReadiness);
}

}  // namespace sextant::kubelet
