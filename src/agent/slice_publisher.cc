#include "agent/slice_publisher.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace sextant::agent {
namespace {

using api::Editor;
using api::Mut;
using api::Object;

constexpr Duration kRetryAfter = std::chrono::seconds(1);
constexpr client::Gvr kSlices{"resource.k8s.io", "v1", "resourceslices"};
constexpr std::string_view kApiVersion = "resource.k8s.io/v1";
// All of a node's devices are in one slice: a slice holds 128 (resource/v1 types.go), a server
// fewer.
constexpr int kSliceCount = 1;

// The index of the slice within its pool, in five hexadecimal digits at least, stands first.
std::string GenerateName(std::string_view driver, const std::string& node) {
  return fmt::format("{:05x}-{}-{}-", 0, driver, node);
}

void SetPool(Mut spec, const std::string& node, int64_t generation) {
  const Mut pool = spec["pool"];
  pool.Set("name", node);
  pool.Set("generation", generation);
  pool.Set("resourceSliceCount", kSliceCount);
}

int64_t GenerationOf(const Object& slice) { return slice["spec"]["pool"]["generation"].AsInt(); }

}  // namespace

struct SlicePublisher::Write {
  enum class Verb { kCreate, kUpdate, kDelete } verb;
  Object slice;
};

SlicePublisher::SlicePublisher(client::Client& client, SliceOptions options)
    : client_(client), options_(std::move(options)) {}

SlicePublisher::~SlicePublisher() {
  alive_.End();
  client_.executor().Cancel(retry_);
}

void SlicePublisher::Publish(std::vector<DriverDevices> wanted) {
  wanted_ = std::move(wanted);
  if (!slices_) {
    slices_ = std::make_unique<client::Informer>(
        client_, client::InformerOptions{.gvr = kSlices,
                                         .ns = "",
                                         .label_selector = "",
                                         .field_selector = "spec.nodeName=" + options_.node});
    changes_ = slices_->Subscribe([this](const client::Change&) { SyncSoon(); });
  }
  SyncSoon();
}

// Once for all that changes in one turn of the loop.
void SlicePublisher::SyncSoon() {
  if (std::exchange(posted_, true)) return;
  client_.executor().Post(alive_.Guard([this] {
    posted_ = false;
    Sync();
  }));
}

void SlicePublisher::Sync() {
  if (syncing_) {
    again_ = true;
    return;
  }
  syncing_ = true;
  client_.executor().Cancel(std::exchange(retry_, 0));
  client_.Get(client::kNodes, {"", options_.node}, alive_.Guard([this](Result<Object> node) {
    if (!node) return Done(node.error().Is("NotFound") ? nullptr : &node.error());
    client::ListOptions options;
    options.field_selector = "spec.nodeName=" + options_.node;
    client_.List(kSlices, std::move(options),
                 alive_.Guard([this, uid = std::string(node->uid())](Result<client::List> list) {
                   if (!list) return Done(&list.error());
                   Compare(uid, list->items);
                 }));
  }));
}

void SlicePublisher::Compare(std::string node_uid, const std::vector<Object>& slices) {
  auto writes = std::make_shared<std::vector<Write>>();
  for (const DriverDevices& driver : wanted_) {
    for (Write& write : WritesFor(driver, node_uid, slices)) writes->push_back(std::move(write));
  }
  Send(std::move(writes), 0);
}

// The pool's one slice: kept, changed or made. A change of one slice needs no new generation of the
// pool; a new slice has a higher one than those it replaces.
std::vector<SlicePublisher::Write> SlicePublisher::WritesFor(
    const DriverDevices& driver, const std::string& node_uid,
    const std::vector<Object>& slices) const {
  std::vector<Write> writes;
  const std::string name = GenerateName(driver.driver, options_.node);
  int64_t generation = 0;
  for (const Object& slice : slices) {
    if (slice["spec"]["driver"].AsString() == driver.driver)
      generation = std::max(generation, GenerationOf(slice));
  }
  bool found = !driver.spec;
  for (const Object& slice : slices) {
    if (slice["spec"]["driver"].AsString() != driver.driver) continue;
    const bool serves = !found && GenerationOf(slice) == generation &&
                        slice["spec"]["pool"]["name"].AsString() == options_.node &&
                        slice.name().starts_with(name);
    if (!serves) {
      writes.push_back({Write::Verb::kDelete, slice});
      continue;
    }
    found = true;
    const bool same = Equal(slice["spec"]["devices"], driver.spec["devices"]) &&
                      slice["spec"]["pool"]["resourceSliceCount"].AsInt() == kSliceCount;
    if (same) continue;
    Editor edit(slice);
    SetPool(edit["spec"], options_.node, generation);
    edit["spec"]["devices"].Set(driver.spec["devices"]);
    edit.Keep(driver.spec);
    writes.push_back({Write::Verb::kUpdate, std::move(edit).Finish()});
  }
  if (found) return writes;
  Editor edit;
  const Mut root = edit.Root();
  root.Set("kind", "ResourceSlice");
  root.Set("apiVersion", kApiVersion);
  const Mut metadata = root["metadata"];
  metadata.Set("generateName", name);
  if (options_.simulated) metadata["annotations"].Set(kSimulatedAnnotation, "true");
  const Mut owner = metadata["ownerReferences"].Append();
  owner.Set("apiVersion", "v1");
  owner.Set("kind", "Node");
  owner.Set("name", options_.node);
  owner.Set("uid", node_uid);
  owner.Set("controller", true);
  const Mut spec = root["spec"];
  spec.Set("driver", driver.driver);
  SetPool(spec, options_.node, generation + 1);
  spec.Set("nodeName", options_.node);
  spec["devices"].Set(driver.spec["devices"]);
  edit.Keep(driver.spec);
  writes.push_back({Write::Verb::kCreate, std::move(edit).Finish()});
  return writes;
}

// One after another; what fails is compared anew later.
void SlicePublisher::Send(std::shared_ptr<std::vector<Write>> writes, size_t next) {
  if (next == writes->size()) return Done(nullptr);
  const Write& write = (*writes)[next];
  auto then = alive_.Guard([this, writes, next](Result<Object> answer) {
    const bool gone =
        !answer && (*writes)[next].verb == Write::Verb::kDelete && answer.error().Is("NotFound");
    if (!answer && !gone) return Done(&answer.error());
    Send(writes, next + 1);
  });
  const client::ObjectName name = client::NameOf(write.slice);
  switch (write.verb) {
    case Write::Verb::kCreate:
      return client_.Create(kSlices, {}, write.slice, {}, std::move(then));
    case Write::Verb::kUpdate:
      return client_.Update(kSlices, name, write.slice, {}, std::move(then));
    case Write::Verb::kDelete:
      return client_.Delete(kSlices, name,
                            {.uid = std::string(write.slice.uid()),
                             .resource_version = std::string(write.slice.resource_version())},
                            std::move(then));
  }
}

void SlicePublisher::Done(const Error* error) {
  syncing_ = false;
  if (error) {
    log::Warning("agent", "cannot publish the ResourceSlices of {}: {}", options_.node,
                 error->message);
    retry_ = client_.executor().After(kRetryAfter, [this] { Sync(); });
  }
  if (std::exchange(again_, false)) SyncSoon();
}

}  // namespace sextant::agent
