// What an object gave away to be called later must not run on it when it is gone.
//
//   class Poller {
//     void Ask() { client_.Get(..., alive_.Guard([this](Result<Object> r) { Take(r); })); }
//     Alive alive_;
//   };
//
// Threads: guarded functions run on the thread that ends them.
#pragma once

#include <memory>
#include <utility>

namespace sextant {

class Alive {
 public:
  // Runs `f` unless this has ended by then.
  template <typename F>
  auto Guard(F f) const {
    return [token = std::weak_ptr<Token>(token_), f = std::move(f)](auto&&... args) mutable {
      if (!token.expired()) f(std::forward<decltype(args)>(args)...);
    };
  }
  // Nothing that was guarded until now runs any more.
  void End() { token_ = std::make_shared<Token>(); }

 private:
  struct Token {};
  std::shared_ptr<Token> token_ = std::make_shared<Token>();
};

}  // namespace sextant
