#include "kubelet/status_writer.h"

#include <algorithm>

#include "base/log.h"
#include "kubelet/pod_model.h"

namespace sextant::kubelet {
namespace {

using api::Object;

constexpr Duration kRetryBase = std::chrono::seconds(1);
constexpr int kMaxRetryFactor = 10;

}  // namespace

StatusWriter::StatusWriter(client::Client& client, const Object& pod)
    : client_(client), first_(pod), name_(NameOf(pod)), uid_(pod.uid()) {}

StatusWriter::~StatusWriter() {
  *alive_ = false;
  client_.executor().Cancel(timer_);
}

void StatusWriter::Set(Object status) {
  if (closed_) return;
  const Object& newest = next_ ? next_ : told_;
  if (newest && Equal(newest.root(), status.root())) return;
  next_ = std::move(status);
  if (!in_flight_ && timer_ == 0) Send();
}

void StatusWriter::DeleteWhenTold() {
  if (delete_wanted_ || closed_) return;
  delete_wanted_ = true;
  if (!in_flight_ && timer_ == 0 && !next_) Delete();
}

void StatusWriter::Close() {
  closed_ = true;
  next_ = {};
  client_.executor().Cancel(timer_);
  timer_ = 0;
}

void StatusWriter::Send() {
  if (closed_ || !next_) return;
  told_ = std::exchange(next_, {});
  in_flight_ = true;
  api::Editor edit;
  edit.Root()["metadata"].Set("uid", uid_);
  edit.Root()["status"].Set(told_);
  client_.Patch(client::kPods, name_, client::PatchType::kStrategic, std::move(edit).Finish(),
                {.field_manager = "kubelet", .subresource = "status"},
                [this, alive = alive_](Result<Object> result) {
                  if (*alive) OnSent(std::move(result));
                });
}

void StatusWriter::OnSent(Result<Object> result) {
  in_flight_ = false;
  if (closed_) return;
  if (!result) {
    // Gone, or another Pod of that name has come: nobody is left to be told.
    if (result.error().Is("NotFound") || result.error().Is("Conflict")) return Close();
    log::Warning("kubelet", "status of Pod {}: {}", name_.ToString(), result.error().message);
    if (!next_) next_ = told_;
    return Again(&StatusWriter::Send);
  }
  failures_ = 0;
  if (next_) return Send();
  if (delete_wanted_) Delete();
}

void StatusWriter::Delete() {
  if (closed_) return;
  in_flight_ = true;
  client_.Delete(client::kPods, name_, {.grace_period_s = 0, .uid = uid_},
                 [this, alive = alive_](Result<Object> result) {
                   if (!*alive) return;
                   in_flight_ = false;
                   if (result || result.error().Is("NotFound") || result.error().Is("Conflict")) {
                     return Close();
                   }
                   log::Warning("kubelet", "deleting Pod {}: {}", name_.ToString(),
                                result.error().message);
                   Again(&StatusWriter::Delete);
                 });
}

void StatusWriter::Again(void (StatusWriter::*what)()) {
  failures_ = std::min(failures_ + 1, kMaxRetryFactor);
  timer_ = client_.executor().After(kRetryBase * failures_, [this, what] {
    timer_ = 0;
    (this->*what)();
  });
}

}  // namespace sextant::kubelet
