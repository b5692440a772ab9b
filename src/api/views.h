// What the generated typed views (api/views/core_v1.h, ...) are made of.
//
// A view is a Value with named, typed getters; it costs nothing to make and lives as long as the
// document below it. One header and one namespace per .proto file; a getter has the JSON name of
// its field (with "_" where C++ keeps the word for itself):
//
//   #include "api/views/core_v1.h"
//
//   core_v1::Pod pod(object.root());
//   for (core_v1::Container c : pod.spec().containers()) Use(c.name(), c.resources().limits());
//
// Getters return, for an absent field, what Go's zero value would be. Kinds of fields:
//
//   string, Time, Duration, bytes   std::string_view (Time as RFC 3339, bytes as base64)
//   integers, bool, double          int64_t, bool, double
//   pointers to them                x(otherwise), and has_x()
//   messages                        the message's view, and has_x() where absence has a meaning
//   lists                           ListView<element>
//   maps, Quantity, IntOrString, raw values   Value
#pragma once

#include <cstdint>
#include <string_view>

#include "api/document.h"

namespace sextant::api {

struct View {
  Value v;
  View() = default;
  explicit View(Value value) : v(value) {}
  explicit operator bool() const { return static_cast<bool>(v); }  // present and not null
};

namespace internal {
template <typename T>
T Element(Value v) {
  return T(v);
}
template <>
inline std::string_view Element<std::string_view>(Value v) {
  return v.AsString();
}
template <>
inline int64_t Element<int64_t>(Value v) {
  return v.AsInt();
}
template <>
inline bool Element<bool>(Value v) {
  return v.AsBool();
}
template <>
inline double Element<double>(Value v) {
  return v.AsDouble();
}
}  // namespace internal

// The items of a list as T.
template <typename T>
class ListView {
 public:
  class Iterator {
   public:
    Iterator(Value list, size_t i) : list_(list), i_(i) {}
    T operator*() const { return internal::Element<T>(list_.at(i_)); }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return i_ == other.i_; }

   private:
    Value list_;
    size_t i_;
  };

  explicit ListView(Value list) : list_(list), size_(list.IsList() ? list.size() : 0) {}
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T at(size_t i) const { return internal::Element<T>(list_.at(i)); }
  Iterator begin() const { return Iterator(list_, 0); }
  Iterator end() const { return Iterator(list_, size_); }
  Value value() const { return list_; }

 private:
  Value list_;
  size_t size_;
};

}  // namespace sextant::api
