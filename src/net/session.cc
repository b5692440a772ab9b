#include "net/session.h"

#include <algorithm>
#include <cstring>

namespace sextant::net {

void SetTarget(Request& request, std::string target) {
  request.target = std::move(target);
  const size_t question = request.target.find('?');
  request.path = request.target.substr(0, question);
  request.query =
      question == std::string::npos ? std::string() : request.target.substr(question + 1);
}

BodySource::Piece WholeBody::Read(char* to, size_t max) {
  const size_t size = bytes_ ? bytes_->size() : 0;
  const size_t n = std::min(max, size - at_);
  if (n > 0) std::memcpy(to, bytes_->data() + at_, n);
  at_ += n;
  return {.size = n, .end = at_ == size};
}

}  // namespace sextant::net
