// The device manager's file: which container holds which devices, and what the plugin answered for
// them, so that a restart neither loses nor doubles a card.
#include <unistd.h>

#include "api/json.h"
#include "base/file.h"
#include "base/log.h"
#include "kubelet/device_manager.h"

namespace sextant::kubelet {
namespace {

using api::Mut;
using api::Value;

constexpr size_t kMaxCheckpointBytes = 16 << 20;
constexpr int kCheckpointMode = 0600;
constexpr mode_t kFolderMode = 0755;

void WriteAnswer(Mut out, const plugin::ContainerAllocation& answer) {
  for (const auto& [name, value] : answer.envs) out["envs"].Set(name, value);
  for (const plugin::Mount& mount : answer.mounts) {
    Mut item = out["mounts"].Append();
    item.Set("containerPath", mount.container_path);
    item.Set("hostPath", mount.host_path);
    item.Set("readOnly", mount.read_only);
  }
  for (const plugin::DeviceSpec& device : answer.devices) {
    Mut item = out["devices"].Append();
    item.Set("containerPath", device.container_path);
    item.Set("hostPath", device.host_path);
    item.Set("permissions", device.permissions);
  }
  for (const auto& [name, value] : answer.annotations) out["annotations"].Set(name, value);
  for (const std::string& name : answer.cdi_devices) out["cdiDevices"].Append().SetString(name);
}

plugin::ContainerAllocation ReadAnswer(Value in) {
  plugin::ContainerAllocation answer;
  for (auto [name, value] : in["envs"].members()) answer.envs[std::string(name)] = value.AsString();
  for (Value mount : in["mounts"].items()) {
    answer.mounts.push_back({std::string(mount["containerPath"].AsString()),
                             std::string(mount["hostPath"].AsString()),
                             mount["readOnly"].AsBool()});
  }
  for (Value device : in["devices"].items()) {
    answer.devices.push_back({std::string(device["containerPath"].AsString()),
                              std::string(device["hostPath"].AsString()),
                              std::string(device["permissions"].AsString())});
  }
  for (auto [name, value] : in["annotations"].members())
    answer.annotations[std::string(name)] = value.AsString();
  for (Value name : in["cdiDevices"].items()) answer.cdi_devices.emplace_back(name.AsString());
  return answer;
}

}  // namespace

std::string DeviceManager::Serialise() const {
  api::Editor edit;
  Mut root = edit.Root();
  root["entries"].SetList();
  for (const auto& [uid, containers] : pods_) {
    for (const auto& [container, allocations] : containers) {
      for (const auto& [resource, allocation] : allocations) {
        Mut entry = root["entries"].Append();
        entry.Set("podUID", uid);
        entry.Set("containerName", container);
        entry.Set("resourceName", resource);
        entry["deviceIDs"].SetList();
        for (const std::string& id : allocation.ids) entry["deviceIDs"].Append().SetString(id);
        entry["answer"].SetMap();
        WriteAnswer(entry["answer"], allocation.answer);
      }
    }
  }
  root["registered"].SetList();
  for (const auto& [resource, endpoint] : endpoints_)
    root["registered"].Append().SetString(resource);
  return api::ToJson(root.Snapshot());
}

void DeviceManager::Restore(const std::string& text) {
  auto parsed = api::ParseJson(text);
  if (!parsed) {
    log::Error("kubelet", "device checkpoint {} is not readable, devices start free: {}",
               checkpoint_, parsed.error().message);
    return;
  }
  for (Value entry : (*parsed)["entries"].items()) {
    Allocation allocation;
    for (Value id : entry["deviceIDs"].items()) allocation.ids.emplace_back(id.AsString());
    allocation.answer = ReadAnswer(entry["answer"]);
    pods_[std::string(entry["podUID"].AsString())][std::string(entry["containerName"].AsString())]
         [std::string(entry["resourceName"].AsString())] = std::move(allocation);
  }
  // A plugin that is not back within the grace is gone: its capacity is zero from the start.
  for (Value resource : (*parsed)["registered"].items()) Expect(std::string(resource.AsString()));
  Recount();
}

void DeviceManager::Expect(const std::string& resource) {
  if (endpoints_.contains(resource)) return;
  endpoints_[resource].expiry = loop_.After(kEndpointStopGrace, [this, alive = alive_, resource] {
    if (*alive) Gone(resource);
  });
  Recount();
}

void DeviceManager::Load(std::move_only_function<void()> done) {
  files_.Post(
      [this, alive = alive_, &loop = loop_, path = checkpoint_, done = std::move(done)]() mutable {
        Result<std::string> text =
            path.empty() ? Result<std::string>("") : ReadFile(path, kMaxCheckpointBytes);
        loop.Post([this, alive, text = std::move(text), done = std::move(done)]() mutable {
          if (!*alive) return;
          loaded_ = true;
          if (text && !text->empty()) Restore(*text);
          if (!text && !text.error().Is("NotFound")) {
            log::Error("kubelet", "device checkpoint: {}", text.error().message);
          }
          if (dirty_ && !saving_) Write();
          done();
        });
      });
}

void DeviceManager::Save(std::move_only_function<void(Status)> done) {
  waiting_for_save_.push_back(std::move(done));
  dirty_ = true;
  if (loaded_ && !saving_) Write();  // else it would forget what is on disk
}

namespace {

// A new node has no folder yet.
Status WriteCheckpoint(const std::string& path, const std::string& text) {
  RETURN_IF_ERROR(MakeDirectories(path.substr(0, path.rfind('/')), kFolderMode));
  return WriteFileAtomic(path, text, kCheckpointMode);
}

}  // namespace

// One write at a time; changes that come during it go into the next.
void DeviceManager::Write() {
  saving_ = true;
  dirty_ = false;
  auto waiting = std::make_shared<std::vector<std::move_only_function<void(Status)>>>(
      std::exchange(waiting_for_save_, {}));
  files_.Post([this, alive = alive_, &loop = loop_, path = checkpoint_,
               text = checkpoint_.empty() ? std::string() : Serialise(), waiting] {
    const Status saved = path.empty() ? Status() : WriteCheckpoint(path, text);
    loop.Post([this, alive, saved, waiting] {
      if (!*alive) return;
      saving_ = false;
      if (dirty_) Write();
      for (auto& done : *waiting) done(saved);
    });
  });
}

}  // namespace sextant::kubelet
