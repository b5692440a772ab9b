#include "server/flow_control.h"

#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace sextant::server {

class FlowControl::Lines : public std::enable_shared_from_this<Lines> {
 public:
  explicit Lines(Limits limits) : limits_(limits) {}

  bool Add(const std::string& name, Task task) {
    std::lock_guard lock(mutex_);
    Client& client = Of(name);
    if (client.waiting.size() >= limits_.waiting) return false;
    if (client.waiting.empty()) turns_.push_back(&client);
    client.waiting.push_back(std::move(task));
    return true;
  }

  // The next task of the client whose turn it is.
  Task Next() {
    std::lock_guard lock(mutex_);
    Client& client = *turns_.front();
    turns_.pop_front();
    Task task = std::move(client.waiting.front());
    client.waiting.pop_front();
    if (client.waiting.empty()) {
      Forget(client);
    } else {
      turns_.push_back(&client);
    }
    return task;
  }

  Share Take(const std::string& name, size_t watches, size_t bytes) {
    std::lock_guard lock(mutex_);
    Client& client = Of(name);
    const bool too_much = client.watches + watches > limits_.watches ||
                          (client.bytes > 0 && client.bytes + bytes > limits_.bytes);
    if (too_much) return nullptr;
    client.watches += watches;
    client.bytes += bytes;
    return {this, [lines = shared_from_this(), &client, watches, bytes](const void*) {
              std::lock_guard given(lines->mutex_);
              client.watches -= watches;
              client.bytes -= bytes;
              lines->Forget(client);
            }};
  }

 private:
  struct Client {
    std::string name;
    std::deque<Task> waiting;
    size_t watches = 0;
    size_t bytes = 0;
  };

  Client& Of(const std::string& name) {
    Client& client = clients_[name];
    if (client.name.empty()) client.name = name;
    return client;
  }
  // Nothing is kept of a client that neither waits nor holds anything.
  void Forget(const Client& client) {
    if (client.waiting.empty() && client.watches == 0 && client.bytes == 0) {
      clients_.erase(std::string(client.name));
    }
  }

  const Limits limits_;
  std::mutex mutex_;
  std::unordered_map<std::string, Client> clients_;  // guarded by mutex_; its nodes stay in place
  std::deque<Client*> turns_;  // guarded by mutex_: those with tasks that wait
};

FlowControl::FlowControl(Executor& workers, Limits limits)
    : workers_(workers), lines_(std::make_shared<Lines>(limits)) {}

bool FlowControl::Post(const std::string& client, Task task) {
  if (!lines_->Add(client, std::move(task))) return false;
  workers_.Post([lines = lines_] { lines->Next()(); });
  return true;
}

FlowControl::Share FlowControl::TakeWatch(const std::string& client) {
  return lines_->Take(client, 1, 0);
}

FlowControl::Share FlowControl::TakeBytes(const std::string& client, size_t bytes) {
  return lines_->Take(client, 0, bytes);
}

}  // namespace sextant::server
