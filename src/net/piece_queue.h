// Shared buffers waiting to be sent, read as one run of bytes. Internal to net. Not locked.
#pragma once

#include <algorithm>
#include <vector>

#include "net/http.h"

namespace sextant::net {

class PieceQueue {
 public:
  void Push(Buffer piece) {
    if (!piece || piece->empty()) return;
    bytes_ += piece->size();
    pieces_.push_back(std::move(piece));
  }
  size_t bytes() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }

  size_t Read(char* to, size_t max) {
    size_t done = 0;
    while (done < max && next_ < pieces_.size()) {
      const std::string& piece = *pieces_[next_];
      const size_t n = std::min(max - done, piece.size() - at_);
      std::copy_n(piece.data() + at_, n, to + done);
      done += n;
      at_ += n;
      if (at_ == piece.size()) {
        pieces_[next_++].reset();
        at_ = 0;
      }
    }
    bytes_ -= done;
    if (next_ == pieces_.size()) {
      pieces_.clear();
      next_ = 0;
    } else if (next_ > 64 && next_ * 2 > pieces_.size()) {
      pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<ptrdiff_t>(next_));
      next_ = 0;
    }
    return done;
  }

  void Clear() { *this = PieceQueue(); }

 private:
  std::vector<Buffer> pieces_;
  size_t next_ = 0;   // the first not read in full
  size_t at_ = 0;     // within it
  size_t bytes_ = 0;  // in all, not yet read
};

}  // namespace sextant::net
