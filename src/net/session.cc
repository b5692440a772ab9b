#include "net/session.h"

#include <algorithm>
#include <cstring>

namespace sextant::net {

BodySource::Piece WholeBody::Read(char* to, size_t max) {
  const size_t size = bytes_ ? bytes_->size() : 0;
  const size_t n = std::min(max, size - at_);
  if (n > 0) std::memcpy(to, bytes_->data() + at_, n);
  at_ += n;
  return {.size = n, .end = at_ == size};
}

}  // namespace sextant::net
