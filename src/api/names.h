// Kinds of names, with the complaints of apimachinery's util/validation and api/validate/content.
//
//   for (std::string& why : IsDns1123Label(name)) errors.InvalidText(path, name, why);
//
// An empty result means that the text is one. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::api {

using Complaints = std::vector<std::string>;

inline constexpr size_t kDns1123LabelMax = 63;
inline constexpr size_t kDns1123SubdomainMax = 253;
inline constexpr size_t kLabelValueMax = 63;

Complaints IsDns1123Label(std::string_view text);
Complaints IsDns1123Subdomain(std::string_view text);
Complaints IsDns1123SubdomainWithUnderscore(std::string_view text);
Complaints IsDns1123SubdomainCaseless(std::string_view text);
Complaints IsWildcardDns1123Subdomain(std::string_view text);
Complaints IsDns1035Label(std::string_view text);
Complaints IsMixedCaseLabel(std::string_view text);  // a DNS-1035 label but for its case: kinds
Complaints IsGroupVersion(std::string_view text);    // as an apiVersion has it
Complaints IsQualifiedName(std::string_view text);   // label keys, resource names
Complaints IsLabelValue(std::string_view text);
Complaints IsCIdentifier(std::string_view text);
Complaints IsPathSegmentName(std::string_view text);
Complaints IsPortNumber(int64_t port);
Complaints IsPortName(std::string_view text);
Complaints IsPercent(std::string_view text);
Complaints IsHttpHeaderName(std::string_view text);
Complaints IsRelaxedEnvVarName(std::string_view text);
Complaints IsConfigMapKey(std::string_view text);
Complaints IsUserId(int64_t id);
Complaints IsGroupId(int64_t id);
Complaints IsInRange(int64_t value, int64_t low, int64_t high);

// metadata.name of most kinds; `prefix` for generateName, which may end with a dash.
Complaints NameIsDnsSubdomain(std::string_view name, bool prefix);
Complaints NameIsDnsLabel(std::string_view name, bool prefix);

std::string MaxLengthComplaint(size_t characters);  // "must be no more than 63 characters"
std::string RangeComplaint(int64_t low, int64_t high);

}  // namespace sextant::api
