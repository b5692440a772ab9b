#include "controllers/reconciler.h"

#include <algorithm>

#include "api/schema.h"
#include "base/log.h"

namespace sextant::controllers {
namespace {

using api::Object;
using client::Callback;

constexpr std::string_view kManager = "kube-controller-manager";
constexpr Duration kCacheLimit = std::chrono::seconds(5);

const api::Message* MessageOf(Gvr gvr) {
  const api::Resource* resource =
      api::Registry::Builtin().Find({gvr.group, gvr.version}, gvr.resource);
  return resource ? resource->message : nullptr;
}

// Lost races come again by themselves, and what was deleted meanwhile needs no words.
bool IsSilent(const Error& error) { return error.code == 409 || error.code == 404; }

}  // namespace

std::string AccountUser(std::string_view account) {
  return "system:serviceaccount:kube-system:" + std::string(account);
}

bool RevisionAtLeast(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() > b.size() : a >= b;
}

Reconciler::Reconciler(Deps deps, ReconcilerOptions options)
    : deps_(deps),
      events_(deps.client, {.component = options.component, .host = ""}),
      queue_(deps.client.executor(), {.parallel = options.parallel},
             [this, component = options.component](const ObjectName& key, auto done) {
               Reconcile(key, [component, key, done = std::move(done)](Status status) mutable {
                 if (!status && !IsSilent(status.error())) {
                   log::Info("controllers", "{}: {}: {}", component, key.ToString(),
                             status.error().message);
                 }
                 done(std::move(status));
               });
             }) {}

Reconciler::~Reconciler() = default;

client::Informer& Reconciler::Use(Gvr gvr) {
  client::Informer& informer = deps_.informers.For({.gvr = gvr});
  if (std::find(used_.begin(), used_.end(), &informer) == used_.end()) {
    used_.push_back(&informer);
    if (!begun_) informer.OnSynced(Guarded([this] { MaybeBegin(); }));
  }
  return informer;
}

void Reconciler::Hear(client::Informer& informer, client::ChangeHandler handler) {
  if (begun_) {
    subscriptions_.emplace_back(&informer, informer.Subscribe(std::move(handler)));
    return;
  }
  heard_.emplace_back(&informer, std::move(handler));
}

void Reconciler::Start() {
  started_ = true;
  MaybeBegin();
}

void Reconciler::MaybeBegin() {
  if (!started_ || begun_) return;
  for (client::Informer* informer : used_)
    if (!informer->synced()) return;
  begun_ = true;
  OnStarted();
  for (auto& [informer, handler] : heard_)
    subscriptions_.emplace_back(informer, informer->Subscribe(std::move(handler)));
}

void Reconciler::LetGo(client::Informer& informer) {
  std::erase(used_, &informer);
  const auto of_it = [&](const auto& each) { return each.first == &informer; };
  std::erase_if(heard_, of_it);
  std::erase_if(subscriptions_, of_it);
  // It may have been what the others waited for.
  if (!begun_) loop().Post(Guarded([this] { MaybeBegin(); }));
}

Writer::Writer(Reconciler& controller, Gvr gvr)
    : controller_(controller),
      gvr_(gvr),
      cache_(controller.Use(gvr)),
      message_(MessageOf(gvr)),
      subscription_(cache_.Subscribe([this](const Change& change) { Look(change.name()); })) {}

// A Writer goes because its controller does: what waits here must not run on the rest of it.
Writer::~Writer() {
  if (retired_) return;
  controller_.alive_.End();
  for (auto& [name, waiter] : waiters_) controller_.loop().Cancel(waiter.timer);
}

void Writer::Retire() {
  retired_ = true;
  subscription_.reset();
  for (auto& [name, waiter] : std::exchange(waiters_, {})) {
    controller_.loop().Cancel(waiter.timer);
    controller_.loop().Post(controller_.Guarded(std::move(waiter.then)));
  }
}

client::WriteOptions Writer::Options(std::string subresource) const {
  client::WriteOptions options;
  options.field_manager = kManager;
  options.subresource = std::move(subresource);
  return options;
}

void Writer::Look(const ObjectName& name) {
  std::vector<Task> ready;
  auto [at, end] = waiters_.equal_range(name);
  while (at != end) {
    if (!at->second.shown()) {
      ++at;
      continue;
    }
    controller_.loop().Cancel(at->second.timer);
    ready.push_back(std::move(at->second.then));
    at = waiters_.erase(at);
  }
  // In a turn of their own: handlers of the informer see the change first.
  for (Task& task : ready) {
    controller_.loop().Post(
        [alive = std::weak_ptr<bool>(alive_), task = std::move(task)]() mutable {
          if (alive.lock()) task();
        });
  }
}

void Writer::Await(const ObjectName& name, std::function<bool()> shown, Task then) {
  if (shown()) return then();
  const auto at = waiters_.emplace(name, Waiter{std::move(shown), std::move(then)});
  at->second.timer =
      controller_.loop().After(kCacheLimit, [this, alive = std::weak_ptr<bool>(alive_), at] {
        if (!alive.lock()) return;
        Task task = std::move(at->second.then);
        waiters_.erase(at);
        task();
      });
}

void Writer::AwaitRevision(const ObjectName& name, const Object& written, Task then) {
  const std::string wanted(written.resource_version());
  Await(
      name,
      [this, name, wanted] {
        const Object seen = cache_.Get(name);
        return (seen && RevisionAtLeast(seen.resource_version(), wanted)) ||
               RevisionAtLeast(cache_.resource_version(), wanted);
      },
      std::move(then));
}

Callback<Object> Writer::WhenShown(ObjectName name, Callback<Object> done) {
  return controller_.Guarded([this, alive = std::weak_ptr<bool>(alive_), name = std::move(name),
                              done = std::move(done)](Result<Object> result) mutable {
    if (!result || !alive.lock()) return done(std::move(result));  // retired: nothing shows it
    if (name.name.empty()) name.name = result->name();
    const Object written = *result;
    AwaitRevision(name, written, [done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  });
}

void Writer::Create(Object object, Callback<Object> done) {
  ObjectName name = NameOf(object);
  controller_.client().Create(gvr_, {name.ns, ""}, std::move(object), Options(""),
                              WhenShown(name, std::move(done)));
}

void Writer::Update(Object object, Callback<Object> done, std::string subresource) {
  ObjectName name = NameOf(object);
  controller_.client().Update(gvr_, name, std::move(object), Options(std::move(subresource)),
                              WhenShown(name, std::move(done)));
}

void Writer::Patch(const Object& target, client::PatchType type, Object patch,
                   Callback<Object> done, std::string subresource) {
  ObjectName name = NameOf(target);
  controller_.client().Patch(gvr_, name, type, std::move(patch), Options(std::move(subresource)),
                             WhenShown(name, std::move(done)));
}

void Writer::Delete(const Object& target, Callback<Object> done, client::DeleteOptions options) {
  const ObjectName name = NameOf(target);
  options.uid = target.uid();
  controller_.client().Delete(
      gvr_, name, std::move(options),
      controller_.Guarded([this, alive = std::weak_ptr<bool>(alive_), name, target,
                           done = std::move(done)](Result<Object> result) mutable {
        if (!result && !IsSilent(result.error())) return done(std::move(result));
        if (!alive.lock()) return done(target);
        Await(
            name,
            [this, name, uid = std::string(target.uid())] {
              const Object seen = cache_.Get(name);
              return !seen || seen.uid() != uid || seen["metadata"]["deletionTimestamp"];
            },
            [done = std::move(done), target]() mutable { done(target); });
      }));
}

}  // namespace sextant::controllers
