#include "base/status.h"

#include <gtest/gtest.h>

#include "base/quote.h"

namespace sextant {
namespace {

const GroupResource kPods{"", "pods"};
const GroupResource kDeployments{"apps", "deployments"};

struct TextCase {
  Error error;
  int code;
  const char* reason;
  const char* message;
};

// Expected values: k8s.io/apimachinery v0.36.3, pkg/api/errors.
TEST(StatusTest, TextsAreThoseOfApimachinery) {
  const TextCase cases[] = {
      {NotFound(kPods, "a"), 404, "NotFound", "pods \"a\" not found"},
      {NotFound(kDeployments, "a"), 404, "NotFound", "deployments.apps \"a\" not found"},
      {AlreadyExists(kPods, "a"), 409, "AlreadyExists", "pods \"a\" already exists"},
      {Conflict(kPods, "a", "old"), 409, "Conflict",
       "Operation cannot be fulfilled on pods \"a\": old"},
      {Forbidden({}, "", "no"), 403, "Forbidden", "forbidden: no"},
      {Forbidden(kPods, "", "no"), 403, "Forbidden", "pods is forbidden: no"},
      {Forbidden(kPods, "a", "no"), 403, "Forbidden", "pods \"a\" is forbidden: no"},
      {BadRequest("bad"), 400, "BadRequest", "bad"},
      {Unauthorized(), 401, "Unauthorized", "Unauthorized"},
      {Expired("too old"), 410, "Expired", "too old"},
      {Gone("gone"), 410, "Gone", "gone"},
      {MethodNotAllowed(), 405, "MethodNotAllowed",
       "the server does not allow this method on the requested resource"},
      {UnsupportedMediaType("m"), 415, "UnsupportedMediaType", "m"},
      {NotAcceptable("m"), 406, "NotAcceptable", "m"},
      {RequestEntityTooLarge("limit is 3"), 413, "RequestEntityTooLarge",
       "Request entity too large: limit is 3"},
      {TooManyRequests("wait", 1), 429, "TooManyRequests", "wait"},
      {ServiceUnavailable("m"), 503, "ServiceUnavailable", "m"},
      {InternalError("m"), 500, "InternalError", "Internal error occurred: m"},
      {Timeout("m", 0), 504, "Timeout", "Timeout: m"},
      {PathNotFound(), 404, "NotFound", "the server could not find the requested resource"},
  };
  for (const TextCase& c : cases) {
    EXPECT_EQ(c.error.code, c.code) << c.message;
    EXPECT_EQ(c.error.reason, c.reason) << c.message;
    EXPECT_EQ(c.error.message, c.message);
  }
}

TEST(StatusTest, InvalidJoinsItsDistinctCauses) {
  const Cause a{"FieldValueRequired", "Required value", "spec.a"};
  const Cause b{"FieldValueInvalid", "Invalid value: \"x\": no", "spec.b"};
  EXPECT_EQ(Invalid("", "Pod", "x", {}).message, "Pod \"x\" is invalid");
  EXPECT_EQ(Invalid("", "Pod", "x", {a}).message, "Pod \"x\" is invalid: spec.a: Required value");
  EXPECT_EQ(Invalid("", "Pod", "x", {a, a}).message,
            "Pod \"x\" is invalid: spec.a: Required value");
  const Error both = Invalid("apps", "Deployment", "x", {a, b, a});
  EXPECT_EQ(both.message,
            "Deployment.apps \"x\" is invalid: [spec.a: Required value, "
            "spec.b: Invalid value: \"x\": no]");
  EXPECT_EQ(both.group, "apps");
  EXPECT_EQ(both.kind, "Deployment");
  EXPECT_EQ(both.name, "x");
  EXPECT_EQ(both.causes.size(), 3u);
}

TEST(StatusTest, DetailsAreThereWhereApimachinerySetsThem) {
  EXPECT_TRUE(PathNotFound().empty_details);
  EXPECT_TRUE(Timeout("m", 0).empty_details);
  EXPECT_FALSE(BadRequest("m").empty_details);
  EXPECT_FALSE(Unauthorized().empty_details);
  EXPECT_EQ(TooManyRequests("m", 7).retry_after_s, 7);
  EXPECT_EQ(InternalError("m").causes.at(0).message, "m");
}

Result<int> Half(int n) {
  if (n % 2 != 0) return Fail(BadRequest("odd"));
  return n / 2;
}
Result<int> Quarter(int n) {
  ASSIGN_OR_RETURN(const int half, Half(n));
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}
Status Check(int n) {
  RETURN_IF_ERROR(Quarter(n));
  return {};
}

TEST(StatusTest, MacrosPassErrorsOn) {
  EXPECT_EQ(Quarter(8), 2);
  EXPECT_EQ(Quarter(6).error().message, "odd");
  EXPECT_TRUE(Check(8));
  EXPECT_TRUE(Check(6).error().Is("BadRequest"));
}

// Expected values: what Go 1.26 prints with %q.
TEST(QuoteTest, IsGos) {
  const std::pair<std::string, const char*> cases[] = {
      {"", R"("")"},
      {"a\"b\\c", R"("a\"b\\c")"},
      {std::string("\n\t\0\x7f", 4), R"("\n\t\x00\x7f")"},
      {"\xc3\xa9\xe4\xb8\x96", "\"\xc3\xa9\xe4\xb8\x96\""},
      {"\xff\xc3", R"("\xff\xc3")"},
      {"\xed\xa0\x80", R"("\xed\xa0\x80")"},
      {"\xc0\x80", R"("\xc0\x80")"},
      {"\xc2\xa0\xc2\xad\xe2\x80\x8b\xef\xbb\xbf", R"("\u00a0\u00ad\u200b\ufeff")"},
      {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
      {"\xf3\xa0\x80\x81\xee\x80\x80", R"("\U000e0001\ue000")"},
  };
  for (const auto& [in, want] : cases) EXPECT_EQ(Quote(in), want);
}

}  // namespace
}  // namespace sextant
