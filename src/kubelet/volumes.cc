#include "kubelet/volumes.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "kubelet/container_files.h"
#include "kubelet/text_error.h"

namespace sextant::kubelet {
namespace {

using api::Object;
using api::Value;

constexpr mode_t kVolumeDirectoryMode = 0777;

Status Own(const std::string& path, Owner owner) {
  if (geteuid() != 0) return {};  // all of it is the lab's user, and so is the container
  if (lchown(path.c_str(), owner.uid, owner.gid) == 0) return {};
  return Fail(FileError("lchown", path, errno));
}

// Writes a volume's directory and files.
Status WriteVolume(const VolumePlan& plan, const std::string& directory, Owner owner) {
  if (plan.host_file) {
    RETURN_IF_ERROR(MakeDirectories(directory.substr(0, directory.rfind('/')), 0755));
    if (access(directory.c_str(), F_OK) == 0) return {};
    return WriteContainerFile(directory, "", 0644, owner);
  }
  RETURN_IF_ERROR(MakeDirectories(directory, kVolumeDirectoryMode));
  RETURN_IF_ERROR(Own(directory, owner));
  for (const VolumeFile& file : plan.files) {
    const std::string path = directory + "/" + file.path;
    RETURN_IF_ERROR(MakeDirectories(path.substr(0, path.rfind('/')), 0755));
    RETURN_IF_ERROR(WriteContainerFile(path, file.data, file.mode, owner));
  }
  return {};
}

Error SetUpError(std::string_view volume, const Error& error) {
  return TextError(
      fmt::format("MountVolume.SetUp failed for volume \"{}\" : {}", volume, error.message));
}

Object TokenRequest(const TokenWish& wish, const Object& pod) {
  api::Editor edit;
  const api::Mut root = edit.Root();
  root.Set("kind", "TokenRequest");
  root.Set("apiVersion", "authentication.k8s.io/v1");
  const api::Mut spec = root["spec"];
  spec["audiences"].SetList();
  if (!wish.audience.empty()) spec["audiences"].Append().SetString(wish.audience);
  spec.Set("expirationSeconds", wish.expiration_s);
  spec["boundObjectRef"].Set("kind", "Pod");
  spec["boundObjectRef"].Set("apiVersion", "v1");
  spec["boundObjectRef"].Set("name", pod.name());
  spec["boundObjectRef"].Set("uid", pod.uid());
  return std::move(edit).Finish();
}

}  // namespace

// One run of Prepare.
struct VolumeSet::Preparing {
  std::string pod_ip;
  std::string host_ip;
  Object node;
  std::shared_ptr<const Sources> sources;
  std::vector<TokenWish> wishes;
  size_t next_wish = 0;
  std::move_only_function<void(Status)> done;
};

VolumeSet::VolumeSet(VolumeParts parts, Object pod)
    : parts_(std::move(parts)), pod_(std::move(pod)) {}

VolumeSet::~VolumeSet() { *alive_ = false; }

std::string VolumeSet::PathOf(const std::string& volume) const {
  return fmt::format("{}/volumes/{}", parts_.pod_directory, volume);
}

bool VolumeSet::Refreshable() const {
  const SourceNames names = VolumeSources(pod_);
  return !names.config_maps.empty() || !names.secrets.empty() || !VolumeTokens(pod_).empty();
}

void VolumeSet::Prepare(const EnvFacts& facts, std::move_only_function<void(Status)> done) {
  auto preparing = std::make_shared<Preparing>();
  preparing->pod_ip = facts.pod_ip;
  preparing->host_ip = facts.host_ip;
  if (facts.node) preparing->node = api::CopyOf(facts.node);
  preparing->done = std::move(done);
  if (parts_.materialise) preparing->wishes = VolumeTokens(pod_);
  FetchSources(parts_.client, std::string(pod_.ns()), VolumeSources(pod_),
               [this, alive = alive_, preparing](std::shared_ptr<const Sources> sources) {
                 if (!*alive) return;
                 preparing->sources = std::move(sources);
                 RequestTokens(preparing);
               });
}

void VolumeSet::RequestTokens(std::shared_ptr<Preparing> preparing) {
  const Time now = parts_.client.executor().clock().Now();
  while (preparing->next_wish < preparing->wishes.size()) {
    const TokenWish& wish = preparing->wishes[preparing->next_wish];
    const std::string key = wish.volume + "/" + wish.path;
    const auto held = tokens_.find(key);
    if (held != tokens_.end() && now < held->second.renew_at) {
      ++preparing->next_wish;
      continue;
    }
    const std::string account(pod_["spec"]["serviceAccountName"].AsString());
    parts_.client.Create(
        client::kServiceAccounts, {std::string(pod_.ns()), account}, TokenRequest(wish, pod_),
        {.subresource = "token"},
        [this, alive = alive_, preparing, key, now](Result<Object> answer) {
          if (!*alive) return;
          const TokenWish& wish = preparing->wishes[preparing->next_wish];
          if (!answer) {
            return preparing->done(Fail(SetUpError(
                wish.volume, TextError("failed to fetch token: " + answer.error().message))));
          }
          // Renewed after 80 % of its life (pkg/kubelet/token).
          tokens_[key] = {std::string((*answer)["status"]["token"].AsString()),
                          now + std::chrono::seconds(wish.expiration_s * 4 / 5)};
          ++preparing->next_wish;
          RequestTokens(preparing);
        });
    return;
  }
  Write(std::move(preparing));
}

void VolumeSet::Write(std::shared_ptr<Preparing> preparing) {
  const EnvFacts facts{pod_,
                       pod_["spec"]["containers"].at(0),
                       preparing->pod_ip,
                       preparing->host_ip,
                       {},
                       preparing->node.root()};
  std::map<std::string, std::string> tokens;
  for (const auto& [key, token] : tokens_) tokens[key] = token.text;
  std::map<std::string, VolumePlan> plans;
  for (Value volume : pod_["spec"]["volumes"].items()) {
    if (auto usable = CheckClaim(volume, facts, *preparing->sources); !usable) {
      return preparing->done(std::move(usable));
    }
    auto plan = PlanVolume(volume, facts, *preparing->sources, tokens, parts_.materialise);
    if (!plan) {
      return preparing->done(Fail(SetUpError(volume["name"].AsString(), plan.error())));
    }
    plans[plan->name] = *std::move(plan);
  }
  // What is there already, as it should be, stays.
  std::vector<std::pair<std::string, VolumePlan>> work;
  for (const auto& [name, plan] : plans) {
    const auto before = plans_.find(name);
    if (written_ && before != plans_.end() && before->second == plan) continue;
    const std::string directory =
        plan.host_path.empty() ? PathOf(name) : parts_.node_directory + plan.host_path;
    work.emplace_back(directory, plan);
  }
  plans_ = std::move(plans);
  if (!parts_.materialise || work.empty()) return preparing->done({});
  Loop& loop = parts_.client.executor();
  parts_.files.Post(
      [this, &loop, alive = alive_, work = std::move(work), preparing, owner = parts_.owner] {
        Status status;
        for (const auto& [directory, plan] : work) {
          auto written = WriteVolume(plan, directory, owner);
          if (!written) status = Fail(SetUpError(plan.name, written.error()));
          if (!status) break;
        }
        loop.Post([this, alive, status, preparing] {
          if (!*alive) return;
          written_ = status.has_value();
          preparing->done(status);
        });
      });
}

Result<std::vector<Mount>> VolumeSet::MountsFor(Value container, const Env& env) const {
  std::vector<Mount> mounts;
  for (Value wanted : container["volumeMounts"].items()) {
    const std::string name(wanted["name"].AsString());
    const auto found = plans_.find(name);
    if (found == plans_.end()) {
      return Fail(TextError(fmt::format("volume \"{}\" is not mounted", name)));
    }
    Mount mount;
    mount.container_path = wanted["mountPath"].AsString();
    if (!mount.container_path.starts_with('/')) mount.container_path.insert(0, "/");
    mount.read_only = wanted["readOnly"].AsBool() || found->second.read_only;
    mount.host_path = found->second.host_path.empty()
                          ? PathOf(name)
                          : parts_.node_directory + found->second.host_path;
    mount.sub_path = wanted["subPath"].AsString();
    if (const std::string_view expression = wanted["subPathExpr"].AsString(); !expression.empty()) {
      mount.sub_path = Expand(expression, [&](std::string_view variable) {
        const auto value = env.find(std::string(variable));
        return value == env.end() ? std::optional<std::string>() : std::optional(value->second);
      });
    }
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace sextant::kubelet
