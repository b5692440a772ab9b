// The clients: writers of ConfigMaps, of Pods with a GPU each and of one Deployment's size, and a
// watcher. What they are told goes into ledgers; what they hear must agree with it.
//
// Threads: one loop; everything here runs on it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "client/client.h"
#include "ledger.h"

namespace sextant::crash {

inline constexpr std::string_view kNamespace = "default";

class Load {
 public:
  explicit Load(Random& random);

  // The lab has come back: what it holds is checked, then everybody goes on, until Stop.
  void Start(client::Client& client, const std::vector<api::Object>& config_maps,
             const std::vector<api::Object>& pods, const std::vector<api::Object>& deployments,
             Revision listed_at);
  // No new requests; those under way still answer, or fail when the lab dies. The watch goes on.
  void Stop() { running_ = false; }
  // The client goes away.
  void Detach();
  size_t under_way() const { return under_way_; }

  // After writers have stopped and everything was answered: whether the watcher has caught up.
  bool WatcherAgrees() const;
  Revision heard() const { return heard_; }  // by the watcher
  int64_t replicas() const;                  // of the Deployment; -1: it does not exist yet
  std::map<std::string, std::string> Pods() const { return pods_.Uids(); }

  std::vector<std::string> TakeComplaints();
  struct Counts {
    size_t answers = 0, events = 0, resumed = 0, expired = 0;
  };
  Counts counts() const;

 private:
  using Known = std::map<std::string, std::pair<Revision, std::string>>;  // name → revision, data

  void NextConfigMap(int writer);
  void NextPod(int writer);
  void NextReplicas();
  void Send(Ledger& ledger, client::Gvr gvr, Verb verb, std::string name, api::Object object,
            std::string data, std::function<void()> next);
  void WatchFrom(Revision after);
  void OnEvents(const std::vector<client::WatchEvent>& events);
  void OnWatchEnd(const Status& end);
  void CheckHeard(const std::vector<api::Object>& config_maps);
  void ListAgain();

  Random& random_;
  client::Client* client_ = nullptr;
  bool running_ = false;
  size_t under_way_ = 0;
  uint64_t next_data_ = 1;
  Revision newest_ = 0;
  Ledger config_maps_;
  Ledger pods_;
  Ledger deployments_;

  std::unique_ptr<client::WatchHandle> watch_;
  bool resuming_ = false;
  Revision heard_ = 0;                       // the last revision of the watch
  Known mirror_;                             // what the watcher believes
  std::map<std::string, Revision> deleted_;  // what it heard the end of
  Counts counts_;
  std::vector<std::string> complaints_;
};

}  // namespace sextant::crash
