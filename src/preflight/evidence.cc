#include "preflight/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "preflight/checks.h"

namespace sextant::preflight {
namespace {

using api::Mut;

constexpr std::array<std::string_view, kLayers> kNames = {"driver",    "toolkit", "plugin",
                                                          "scheduler", "pod",     "serving"};
constexpr std::array<std::string_view, kLayers> kQuestions = {
    "does the host see the GPU?",
    "can the container runtime hand it to a container?",
    "does Kubernetes see it?",
    "does the Pod get a node?",
    "is it admitted, does it see the same GPU, is that free afterwards?",
    "may it receive traffic?"};

void SetCheck(Mut out, const Check& check) {
  out.Set("layer", static_cast<int>(check.layer));
  out.Set("layerName", LayerName(check.layer));
  out.Set("check", check.id);
  out.Set("required", check.required);
  out.Set("status", StatusName(check.status));
  if (!check.code.empty()) out.Set("code", check.code);
  if (!check.reason.empty()) {
    out.Set(check.status == CheckStatus::kUnsupported ? "unsupportedReason" : "skipReason",
            check.reason);
  }
  for (const std::string& id : check.blocked_by) out["blockedBy"].Append().SetString(id);
  if (!check.summary.empty()) out.Set("summary", check.summary);
  const CheckKind* kind = FindCheckKind(check.id);
  if (kind && check.status == CheckStatus::kPassed) {
    if (!kind->proves.empty()) out.Set("proves", kind->proves);
    if (!kind->does_not_prove.empty()) out.Set("doesNotProve", kind->does_not_prove);
  }
  if (!check.expected.empty()) out.Set("expected", check.expected);
  if (!check.observed.empty()) out.Set("observed", check.observed);
  out["observations"].SetList();
  for (const Observation& seen : check.observations) {
    Mut one = out["observations"].Append();
    one.Set("source", seen.source);
    one.Set("ref", seen.ref);
    one.Set("excerpt", seen.excerpt.substr(0, kMaxExcerpt));
  }
  out.Set("startedAt", FormatMicroTime(check.started));
  out.Set("durationMs", std::chrono::duration_cast<std::chrono::milliseconds>(check.took).count());
}

void SetProbe(Mut root, const Report& report) {
  if (!report.probed) return;
  Mut probe = root["probe"];
  probe.Set("placement", "scheduler");
  probe.Set("claimMode", "none");
  probe.Set("path", "limit");
  Mut identity = root["identity"];
  identity["allocated"].SetList();
  for (const std::string& id : report.allocated) identity["allocated"].Append().SetString(id);
  identity["container"].SetList();
  for (const std::string& id : report.seen) identity["container"].Append().SetString(id);
  const bool known = !report.allocated.empty() && !report.seen.empty();
  identity.Set("equal", !known ? "unknown" : report.allocated == report.seen ? "true" : "false");
}

}  // namespace

std::string_view LayerName(Layer layer) { return kNames.at(static_cast<size_t>(layer) - 1); }
std::string_view LayerQuestion(Layer layer) {
  return kQuestions.at(static_cast<size_t>(layer) - 1);
}

std::string_view StatusName(CheckStatus status) {
  switch (status) {
    case CheckStatus::kPassed:
      return "passed";
    case CheckStatus::kFailed:
      return "failed";
    case CheckStatus::kSkipped:
      return "skipped";
    case CheckStatus::kUnsupported:
      return "unsupported";
    case CheckStatus::kError:
      break;
  }
  return "error";
}

std::string_view ModeName(Mode mode) {
  switch (mode) {
    case Mode::kNone:
      return "none";
    case Mode::kSimulated:
      return "simulated";
    case Mode::kReal:
      break;
  }
  return "real";
}

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return "passed";
    case Verdict::kFailed:
      return "failed";
    case Verdict::kIncomplete:
      return "incomplete";
    case Verdict::kError:
      break;
  }
  return "error";
}

const Check* StopOf(const std::vector<Check>& checks) {
  const Check* lowest = nullptr;
  for (const Check& check : checks) {
    if (check.status != CheckStatus::kFailed && check.status != CheckStatus::kError) continue;
    if (!lowest || check.layer < lowest->layer) lowest = &check;
  }
  return lowest;
}

const Check* FirstUnproven(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    if (check.required && check.status != CheckStatus::kPassed) return &check;
  }
  return nullptr;
}

CheckStatus LayerStatus(const std::vector<Check>& checks, Layer layer) {
  using enum CheckStatus;
  const auto has = [&](CheckStatus status, bool required_only) {
    return std::any_of(checks.begin(), checks.end(), [&](const Check& check) {
      return check.layer == layer && check.status == status && (check.required || !required_only);
    });
  };
  for (CheckStatus status : {kFailed, kError}) {
    if (has(status, false)) return status;
  }
  for (const bool required_only : {true, false}) {
    for (CheckStatus status : {kUnsupported, kSkipped, kPassed}) {
      if (has(status, required_only)) return status;
    }
  }
  return kSkipped;
}

// failed > error > not observed > passed; nothing planned is an error.
Verdict VerdictOf(const std::vector<Check>& checks) {
  if (checks.empty()) return Verdict::kError;
  const auto any = [&](CheckStatus status) {
    return std::any_of(checks.begin(), checks.end(),
                       [&](const Check& check) { return check.status == status; });
  };
  if (any(CheckStatus::kFailed)) return Verdict::kFailed;
  if (any(CheckStatus::kError)) return Verdict::kError;
  if (FirstUnproven(checks) || !any(CheckStatus::kPassed)) return Verdict::kIncomplete;
  return Verdict::kPassed;
}

Verdict VerdictOf(const Report& report) {
  return report.error.empty() ? VerdictOf(report.checks) : Verdict::kError;
}

int ExitCode(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPassed:
      return 0;
    case Verdict::kFailed:
      return 3;
    case Verdict::kIncomplete:
      return 4;
    case Verdict::kError:
      break;
  }
  return 1;
}

api::Object ReportJson(const Report& report) {
  api::Editor edit;
  Mut root = edit.Root();
  root.Set("schema", "sextant.evidence/v1");
  root.Set("runId", report.run_id);
  root.Set("mode", ModeName(report.mode));
  root.Set("startedAt", FormatMicroTime(report.started));
  root.Set("context", report.context);
  root.Set("serverVersion", report.server_version);
  if (!report.error.empty()) {
    root.Set("error", report.error);
    root.Set("remedy", report.remedy);
  }
  const Verdict verdict = VerdictOf(report);
  root.Set("verdict", VerdictName(verdict));
  if (const Check* stop = StopOf(report.checks)) {
    root["stopLayer"].Set("layer", static_cast<int>(stop->layer));
    root["stopLayer"].Set("name", LayerName(stop->layer));
    root["stopLayer"].Set("check", stop->id);
    root["stopLayer"].Set("code", stop->code);
  } else if (verdict == Verdict::kIncomplete) {
    if (const Check* unproven = FirstUnproven(report.checks)) {
      root.Set("firstUnproven", unproven->id);
    }
  }
  Mut layers = root["layers"];
  for (int i = 1; i <= kLayers; ++i) {
    const Layer layer = static_cast<Layer>(i);
    Mut out = layers.Append();
    out.Set("layer", i);
    out.Set("name", LayerName(layer));
    out.Set("status", StatusName(LayerStatus(report.checks, layer)));
  }
  Mut checks = root["checks"];
  checks.SetList();
  for (const Check& check : report.checks) SetCheck(checks.Append(), check);
  SetProbe(root, report);
  if (!report.pod_log.empty()) root.Set("podLog", report.pod_log);
  return std::move(edit).Finish();
}

std::string ReportText(const Report& report) {
  if (!report.error.empty()) {
    return fmt::format("error: {}\n{}\nverdict: error ({}), no layer was looked at\n", report.error,
                       report.remedy, ModeName(report.mode));
  }
  std::string out;
  for (int i = 1; i <= kLayers; ++i) {
    const Layer layer = static_cast<Layer>(i);
    out += fmt::format("{} {:<10} {:<12} {}\n", i, LayerName(layer),
                       StatusName(LayerStatus(report.checks, layer)), LayerQuestion(layer));
    for (const Check& check : report.checks) {
      if (check.layer != layer) continue;
      std::string text = check.summary.empty() ? check.reason : check.summary;
      if (!check.code.empty()) text = fmt::format("{}: {}", check.code, text);
      out += fmt::format("    {:<15} {:<12} {}\n", check.id, StatusName(check.status), text);
    }
  }
  const Verdict verdict = VerdictOf(report);
  out += fmt::format("verdict: {} ({})", VerdictName(verdict), ModeName(report.mode));
  if (const Check* stop = StopOf(report.checks)) {
    out +=
        fmt::format(", {}: {} {} [{}{}{}]",
                    stop->status == CheckStatus::kError ? "ended at layer" : "lowest broken layer",
                    static_cast<int>(stop->layer), LayerName(stop->layer), stop->id,
                    stop->code.empty() ? "" : " ", stop->code);
  } else if (verdict == Verdict::kIncomplete) {
    if (const Check* unproven = FirstUnproven(report.checks)) {
      out += fmt::format(
          ", not shown: {}{}", unproven->id,
          report.probed || unproven->status != CheckStatus::kSkipped ? "" : " (try --probe)");
    }
  }
  return out + "\n";
}

}  // namespace sextant::preflight
