// The tools that the rules of kinds are written with: paths that cost nothing until an error needs
// one, default tables, and checks that many kinds share.
//
//   void ValidatePort(Value port, const At& at, FieldErrors& errors) {
//     NonNegative(port, "hostPort", at, errors);
//     if (port["name"].AsString().empty()) errors.Required(at / "name", "");
//   }
//   for (size_t i = 0; Value port : ports.items()) ValidatePort(port, at.Item("ports", i++),
//   errors);
//
// Everything here is a pure function over values. Threads: any.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "api/names.h"
#include "api/quantity.h"
#include "api/rules.h"

namespace sextant::api {

// A place in an object, as a chain of steps on the stack; text only when an error asks for it. An
// At refers to the one it was made from, so steps are taken from named places only: a chain of
// temporaries does not compile.
class At {
 public:
  At() = default;
  explicit At(std::string_view name) : name_(name) {}

  At operator/(std::string_view name) const& { return At(this, name, kNoIndex, {}); }
  At operator/(std::string_view name) && = delete;
  // `name[index]`; name "" for a second index.
  At Item(std::string_view name, size_t index) const& {
    return At(this, name, static_cast<int64_t>(index), {});
  }
  At Item(std::string_view name, size_t index) && = delete;
  At Key(std::string_view name, std::string_view key) const& {  // `name[key]`
    return At(this, name, kKeyIndex, key);
  }
  At Key(std::string_view name, std::string_view key) && = delete;

  bool IsRoot() const { return parent_ == nullptr && name_.empty(); }
  std::string ToString() const;
  operator std::string() const { return ToString(); }  // NOLINT: paths go where text is wanted

 private:
  static constexpr int64_t kNoIndex = -1;
  static constexpr int64_t kKeyIndex = -2;
  At(const At* parent, std::string_view name, int64_t index, std::string_view key)
      : parent_(parent), name_(name), index_(index), key_(key) {}
  void Print(std::string& out) const;

  const At* parent_ = nullptr;
  std::string_view name_;
  int64_t index_ = kNoIndex;
  std::string_view key_;
};

// One default of a message. A field counts as not given when absent or null: the decoder drops
// zero values of plain fields.
struct Default {
  enum class How : uint8_t {
    kText,
    kFilled,  // as kText, where "" counts as not given: fields that JSON always carries
    kInt,
    kBool,
    kMap,   // {} and then the defaults below it
    kIn,    // the defaults of the message that is there
    kEach,  // those of each item of the list that is there
  };
  std::string_view name;
  How how;
  std::string_view text;
  int64_t number = 0;
  std::span<const Default> below;
};
constexpr Default Text(std::string_view name, std::string_view text) {
  return {name, Default::How::kText, text, 0, {}};
}
constexpr Default Filled(std::string_view name, std::string_view text) {
  return {name, Default::How::kFilled, text, 0, {}};
}
constexpr Default Int(std::string_view name, int64_t n) {
  return {name, Default::How::kInt, {}, n, {}};
}
constexpr Default Bool(std::string_view name, bool b) {
  return {name, Default::How::kBool, {}, b ? 1 : 0, {}};
}
constexpr Default Made(std::string_view name, std::span<const Default> below = {}) {
  return {name, Default::How::kMap, {}, 0, below};
}
constexpr Default In(std::string_view name, std::span<const Default> below) {
  return {name, Default::How::kIn, {}, 0, below};
}
constexpr Default Each(std::string_view name, std::span<const Default> below) {
  return {name, Default::How::kEach, {}, 0, below};
}
void ApplyDefaults(Mut message, std::span<const Default> defaults);
// True if the member is there and not null (asking does not make it).
bool Given(Mut message, std::string_view name);

// `value`, or nothing where there is none.
void SetOrErase(Mut message, std::string_view name, Value value);

// Texts that many rules share.
inline constexpr std::string_view kImmutable = "field is immutable";
inline constexpr std::string_view kNotNegative = "must be greater than or equal to 0";

using Words = std::initializer_list<std::string_view>;

// Each complaint as an Invalid of the text.
void Complain(const Complaints& complaints, std::string_view value, const At& at,
              FieldErrors& errors);
// Absent is fine.
void NonNegative(Value message, std::string_view name, const At& at, FieldErrors& errors);
void RequiredText(Value message, std::string_view name, const At& at, FieldErrors& errors);
// "" counts as given unless `absent_ok`; prints the words as they stand.
void OneOf(Value message, std::string_view name, Words words, const At& at, FieldErrors& errors,
           bool absent_ok = true);
void NotSupported(std::string path, std::string_view value, Words words, FieldErrors& errors);
// Invalid with kImmutable if the values differ; shows the new one.
void Immutable(Value next, Value old, const At& at, FieldErrors& errors);
// The same for a whole message, shown as InternalJson has it.
void ImmutableMessage(Value next, Value old, std::string_view message, const At& at,
                      FieldErrors& errors);
bool Same(Value a, Value b);  // absent, null, {} and [] are the same

void ValidateLabels(Value labels, const At& at, FieldErrors& errors);
void ValidateAnnotations(Value annotations, const At& at, FieldErrors& errors);
// A metav1.LabelSelector. False if it has an error.
bool ValidateLabelSelector(Value selector, const At& at, FieldErrors& errors,
                           bool invalid_values_ok = false);
void ValidateConditions(Value conditions, const At& at, FieldErrors& errors);

// IntOrString.
bool IsPercentText(Value v);
int64_t PercentOf(Value v);  // of "25%"; 0 if it is none
void ValidateIntOrPercent(Value v, const At& at, FieldErrors& errors);
void ValidateAtMost100Percent(Value v, const At& at, FieldErrors& errors);

// An IP address as fields older than 1.36 want it: no leading zeros, no IPv4 in IPv6.
void ValidateIp(std::string_view text, const At& at, FieldErrors& errors);
void ValidateCidr(std::string_view text, const At& at, FieldErrors& errors);
// As newer fields want it: written in the one form of RFC 5952.
Complaints IsCanonicalIp(std::string_view text);
Complaints IsCanonicalCidr(std::string_view text);
// As Go's older parser takes them: leading zeros are as good as none.
bool IsIp(std::string_view text);
bool IsCidr(std::string_view text);
// True if `inner` is a smaller network within `outer`, or either is no network.
bool IsStrictSubnet(std::string_view inner, std::string_view outer);
bool IsIpV6(std::string_view text);
bool IsLoopbackIp(std::string_view text);

// Texts without the whitespace around them, in the words of Go's strings.TrimSpace: nothing is
// left, or more than a line.
bool IsBlank(std::string_view text);
bool HasLineBreak(std::string_view text);

// Paths of files.
void ValidateNoBacksteps(std::string_view path, const At& at, FieldErrors& errors);
void ValidateDescendingPath(std::string_view path, const At& at, FieldErrors& errors);
void ValidateNonReservedPath(std::string_view path, const At& at, FieldErrors& errors);

// Resources and their amounts: rules_resources.cc.
bool IsHugePages(std::string_view resource);
bool IsExtendedResource(std::string_view resource);
bool IsOvercommitAllowed(std::string_view resource);
bool IsStandardQuotaResource(std::string_view resource);
void ValidateResourceName(std::string_view resource, const At& at, FieldErrors& errors);
// Not negative, and whole where the resource is counted.
void ValidateAmount(std::string_view resource, Value quantity, const At& at, FieldErrors& errors);
void ValidatePositiveAmount(Value quantity, const At& at, FieldErrors& errors);

// The object as the API server's own Go types print it as JSON, for messages that show one: field
// names of the internal types, nulls for what is not given. rules_internal.cc.
std::string InternalJson(Value value, std::string_view message, int indent = -1);

}  // namespace sextant::api
