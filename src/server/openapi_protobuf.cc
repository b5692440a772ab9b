#include "server/openapi_protobuf.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/wire.h"

namespace sextant::server {
namespace {

using api::Value;

// The messages of both versions. The last five are one of several, by what the value looks like.
enum class Is : uint8_t {
  kNothing,
  kInfo2,
  kInfo3,
  kSecurityRequirement,
  kDocument2,
  kPaths2,
  kPathItem2,
  kOperation2,
  kBody2,
  kQuery2,
  kPath2,
  kResponses2,
  kResponse2,
  kSchema2,
  kSchemas2,
  kSecurities2,
  kSecurity2,
  kDocument3,
  kPaths3,
  kPathItem3,
  kOperation3,
  kParameter3,
  kBody3,
  kMediaTypes3,
  kMediaType3,
  kResponses3,
  kResponse3,
  kComponents3,
  kSchema3,
  kSchemas3,
  kReference3,
  kSecurities3,
  kSecurity3,
  kParameterOf2,
  kAdditionalOf2,
  kSchemaOf3,
  kAdditionalOf3,
  kDefaultOf3,
};

// What a member is in its message.
enum class As : uint8_t {
  kText,
  kFlag,
  kInteger,
  kNumber,
  kTexts,
  kOne,   // a message
  kMany,  // messages
  kAny,   // any value: its text
  kAnys,
  kNamed,    // all other members: messages {name = 1, value = 2}
  kNamedAny  // those that begin with "x-"
};

struct Row {
  Is message;
  std::string_view key;
  uint32_t number;
  As as;
  Is is = Is::kNothing;
  uint32_t wrap = 0;  // the number in a message around it that has nothing else
};

// clang-format off
constexpr Row kRows[] = {
  {Is::kSecurityRequirement, "", 1, As::kNamed},

  {Is::kDocument2, "swagger", 1, As::kText},
  {Is::kDocument2, "info", 2, As::kOne, Is::kInfo2},
  {Is::kInfo2, "title", 1, As::kText},
  {Is::kInfo2, "version", 2, As::kText},
  {Is::kDocument2, "paths", 8, As::kOne, Is::kPaths2},
  {Is::kDocument2, "definitions", 9, As::kOne, Is::kSchemas2},
  {Is::kDocument2, "security", 12, As::kMany, Is::kSecurityRequirement},
  {Is::kDocument2, "securityDefinitions", 13, As::kOne, Is::kSecurities2},
  {Is::kPaths2, "", 2, As::kNamed, Is::kPathItem2},
  {Is::kPathItem2, "get", 2, As::kOne, Is::kOperation2},
  {Is::kPathItem2, "put", 3, As::kOne, Is::kOperation2},
  {Is::kPathItem2, "post", 4, As::kOne, Is::kOperation2},
  {Is::kPathItem2, "delete", 5, As::kOne, Is::kOperation2},
  {Is::kPathItem2, "options", 6, As::kOne, Is::kOperation2},
  {Is::kPathItem2, "head", 7, As::kOne, Is::kOperation2},
  {Is::kPathItem2, "patch", 8, As::kOne, Is::kOperation2},
  {Is::kPathItem2, "parameters", 9, As::kMany, Is::kParameterOf2},
  {Is::kOperation2, "tags", 1, As::kTexts},
  {Is::kOperation2, "operationId", 5, As::kText},
  {Is::kOperation2, "produces", 6, As::kTexts},
  {Is::kOperation2, "consumes", 7, As::kTexts},
  {Is::kOperation2, "parameters", 8, As::kMany, Is::kParameterOf2},
  {Is::kOperation2, "responses", 9, As::kOne, Is::kResponses2},
  {Is::kOperation2, "schemes", 10, As::kTexts},
  {Is::kOperation2, "", 13, As::kNamedAny},
  {Is::kBody2, "name", 2, As::kText},
  {Is::kBody2, "in", 3, As::kText},
  {Is::kBody2, "required", 4, As::kFlag},
  {Is::kBody2, "schema", 5, As::kOne, Is::kSchema2},
  {Is::kQuery2, "required", 1, As::kFlag},
  {Is::kQuery2, "in", 2, As::kText},
  {Is::kQuery2, "name", 4, As::kText},
  {Is::kQuery2, "type", 6, As::kText},
  {Is::kQuery2, "uniqueItems", 20, As::kFlag},
  {Is::kPath2, "required", 1, As::kFlag},
  {Is::kPath2, "in", 2, As::kText},
  {Is::kPath2, "name", 4, As::kText},
  {Is::kPath2, "type", 5, As::kText},
  {Is::kPath2, "uniqueItems", 19, As::kFlag},
  {Is::kResponses2, "", 1, As::kNamed, Is::kResponse2, 1},
  {Is::kResponse2, "description", 1, As::kText},
  {Is::kResponse2, "schema", 2, As::kOne, Is::kSchema2, 1},
  {Is::kSchemas2, "", 1, As::kNamed, Is::kSchema2},
  {Is::kSchema2, "$ref", 1, As::kText},
  {Is::kSchema2, "format", 2, As::kText},
  {Is::kSchema2, "title", 3, As::kText},
  {Is::kSchema2, "description", 4, As::kText},
  {Is::kSchema2, "default", 5, As::kAny},
  {Is::kSchema2, "multipleOf", 6, As::kNumber},
  {Is::kSchema2, "maximum", 7, As::kNumber},
  {Is::kSchema2, "exclusiveMaximum", 8, As::kFlag},
  {Is::kSchema2, "minimum", 9, As::kNumber},
  {Is::kSchema2, "exclusiveMinimum", 10, As::kFlag},
  {Is::kSchema2, "maxLength", 11, As::kInteger},
  {Is::kSchema2, "minLength", 12, As::kInteger},
  {Is::kSchema2, "pattern", 13, As::kText},
  {Is::kSchema2, "maxItems", 14, As::kInteger},
  {Is::kSchema2, "minItems", 15, As::kInteger},
  {Is::kSchema2, "uniqueItems", 16, As::kFlag},
  {Is::kSchema2, "maxProperties", 17, As::kInteger},
  {Is::kSchema2, "minProperties", 18, As::kInteger},
  {Is::kSchema2, "required", 19, As::kTexts},
  {Is::kSchema2, "enum", 20, As::kAnys},
  {Is::kSchema2, "additionalProperties", 21, As::kOne, Is::kAdditionalOf2},
  {Is::kSchema2, "type", 22, As::kText, Is::kNothing, 1},
  {Is::kSchema2, "items", 23, As::kOne, Is::kSchema2, 1},
  {Is::kSchema2, "properties", 25, As::kOne, Is::kSchemas2},
  {Is::kSchema2, "example", 30, As::kAny},
  {Is::kSchema2, "", 31, As::kNamedAny},
  {Is::kSecurities2, "", 1, As::kNamed, Is::kSecurity2, 2},
  {Is::kSecurity2, "type", 1, As::kText},
  {Is::kSecurity2, "name", 2, As::kText},
  {Is::kSecurity2, "in", 3, As::kText},
  {Is::kSecurity2, "description", 4, As::kText},

  {Is::kDocument3, "openapi", 1, As::kText},
  {Is::kDocument3, "info", 2, As::kOne, Is::kInfo3},
  {Is::kDocument3, "paths", 4, As::kOne, Is::kPaths3},
  {Is::kDocument3, "components", 5, As::kOne, Is::kComponents3},
  {Is::kInfo3, "title", 1, As::kText},
  {Is::kInfo3, "version", 6, As::kText},
  {Is::kPaths3, "", 1, As::kNamed, Is::kPathItem3},
  {Is::kPathItem3, "get", 4, As::kOne, Is::kOperation3},
  {Is::kPathItem3, "put", 5, As::kOne, Is::kOperation3},
  {Is::kPathItem3, "post", 6, As::kOne, Is::kOperation3},
  {Is::kPathItem3, "delete", 7, As::kOne, Is::kOperation3},
  {Is::kPathItem3, "options", 8, As::kOne, Is::kOperation3},
  {Is::kPathItem3, "head", 9, As::kOne, Is::kOperation3},
  {Is::kPathItem3, "patch", 10, As::kOne, Is::kOperation3},
  {Is::kPathItem3, "parameters", 13, As::kMany, Is::kParameter3, 1},
  {Is::kOperation3, "tags", 1, As::kTexts},
  {Is::kOperation3, "operationId", 5, As::kText},
  {Is::kOperation3, "parameters", 6, As::kMany, Is::kParameter3, 1},
  {Is::kOperation3, "requestBody", 7, As::kOne, Is::kBody3, 1},
  {Is::kOperation3, "responses", 8, As::kOne, Is::kResponses3},
  {Is::kOperation3, "", 13, As::kNamedAny},
  {Is::kParameter3, "name", 1, As::kText},
  {Is::kParameter3, "in", 2, As::kText},
  {Is::kParameter3, "required", 4, As::kFlag},
  {Is::kParameter3, "schema", 10, As::kOne, Is::kSchemaOf3},
  {Is::kBody3, "content", 2, As::kOne, Is::kMediaTypes3},
  {Is::kBody3, "required", 3, As::kFlag},
  {Is::kMediaTypes3, "", 1, As::kNamed, Is::kMediaType3},
  {Is::kMediaType3, "schema", 1, As::kOne, Is::kSchemaOf3},
  {Is::kResponses3, "", 2, As::kNamed, Is::kResponse3, 1},
  {Is::kResponse3, "description", 1, As::kText},
  {Is::kResponse3, "content", 3, As::kOne, Is::kMediaTypes3},
  {Is::kComponents3, "schemas", 1, As::kOne, Is::kSchemas3},
  {Is::kComponents3, "securitySchemes", 7, As::kOne, Is::kSecurities3},
  {Is::kSchemas3, "", 1, As::kNamed, Is::kSchemaOf3},
  {Is::kSchema3, "nullable", 1, As::kFlag},
  {Is::kSchema3, "example", 7, As::kAny},
  {Is::kSchema3, "title", 9, As::kText},
  {Is::kSchema3, "multipleOf", 10, As::kNumber},
  {Is::kSchema3, "maximum", 11, As::kNumber},
  {Is::kSchema3, "exclusiveMaximum", 12, As::kFlag},
  {Is::kSchema3, "minimum", 13, As::kNumber},
  {Is::kSchema3, "exclusiveMinimum", 14, As::kFlag},
  {Is::kSchema3, "maxLength", 15, As::kInteger},
  {Is::kSchema3, "minLength", 16, As::kInteger},
  {Is::kSchema3, "pattern", 17, As::kText},
  {Is::kSchema3, "maxItems", 18, As::kInteger},
  {Is::kSchema3, "minItems", 19, As::kInteger},
  {Is::kSchema3, "uniqueItems", 20, As::kFlag},
  {Is::kSchema3, "maxProperties", 21, As::kInteger},
  {Is::kSchema3, "minProperties", 22, As::kInteger},
  {Is::kSchema3, "required", 23, As::kTexts},
  {Is::kSchema3, "enum", 24, As::kAnys},
  {Is::kSchema3, "type", 25, As::kText},
  {Is::kSchema3, "allOf", 26, As::kMany, Is::kSchemaOf3},
  {Is::kSchema3, "oneOf", 27, As::kMany, Is::kSchemaOf3},
  {Is::kSchema3, "anyOf", 28, As::kMany, Is::kSchemaOf3},
  {Is::kSchema3, "not", 29, As::kOne, Is::kSchema3},
  {Is::kSchema3, "items", 30, As::kOne, Is::kSchemaOf3, 1},
  {Is::kSchema3, "properties", 31, As::kOne, Is::kSchemas3},
  {Is::kSchema3, "additionalProperties", 32, As::kOne, Is::kAdditionalOf3},
  {Is::kSchema3, "default", 33, As::kOne, Is::kDefaultOf3},
  {Is::kSchema3, "description", 34, As::kText},
  {Is::kSchema3, "format", 35, As::kText},
  {Is::kSchema3, "", 36, As::kNamedAny},
  {Is::kReference3, "$ref", 1, As::kText},
  {Is::kSecurities3, "", 1, As::kNamed, Is::kSecurity3, 1},
  {Is::kSecurity3, "type", 1, As::kText},
  {Is::kSecurity3, "description", 2, As::kText},
  {Is::kSecurity3, "name", 3, As::kText},
  {Is::kSecurity3, "in", 4, As::kText}};
// clang-format on

// Null for what the table does not know.
const Row* RowOf(Is message, std::string_view key) {
  for (const Row& row : kRows) {
    if (row.message != message) continue;
    if (row.key == key || row.as == As::kNamed) return &row;
    if (row.as == As::kNamedAny && key.starts_with("x-")) return &row;
  }
  return nullptr;
}

// Writes from the back to the front, as WireWriter does.
class Encoder {
 public:
  std::string Encode(Is message, Value value) {
    Content(message, value);
    return std::string(out_.text());
  }

 private:
  template <typename Inside>
  void Frame(uint32_t number, const Inside& inside) {
    const size_t before = out_.size();
    inside();
    out_.Header(number, out_.size() - before);
  }

  void Members(Is message, Value value) {
    std::vector<api::MemberView> members;
    for (const auto& member : value.members()) members.push_back(member);
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      if (const Row* row = RowOf(message, member->key)) Field(*row, member->key, member->value);
    }
  }

  template <typename One>
  static void Reversed(Value list, const One& one) {
    for (size_t i = list.size(); i-- > 0;) one(list.at(i));
  }

  void Field(const Row& row, std::string_view name, Value value) {
    switch (row.as) {
      case As::kText:
        return row.wrap == 0 ? out_.Bytes(row.number, value.AsString())
                             : Frame(row.number, [&] { out_.Bytes(row.wrap, value.AsString()); });
      case As::kFlag:
        return out_.Number(row.number, value.AsBool() ? 1 : 0);
      case As::kInteger:
        return out_.Number(row.number, static_cast<uint64_t>(value.AsInt()));
      case As::kNumber:
        return out_.Double(row.number, value.AsDouble());
      case As::kTexts:
        return Reversed(value, [&](Value one) { out_.Bytes(row.number, one.AsString()); });
      case As::kOne:
        return Frame(row.number, [&] { Wrapped(row, value); });
      case As::kMany:
        return Reversed(value, [&](Value one) { Frame(row.number, [&] { Wrapped(row, one); }); });
      case As::kAny:
        return Frame(row.number, [&] { Any(value); });
      case As::kAnys:
        return Reversed(value, [&](Value one) { Frame(row.number, [&] { Any(one); }); });
      case As::kNamed:
      case As::kNamedAny:
        return Frame(row.number, [&] {
          Frame(2, [&] { row.as == As::kNamed ? Wrapped(row, value) : Any(value); });
          out_.Bytes(1, name);
        });
    }
  }

  // Any YAML text; JSON is that too.
  void Any(Value value) { out_.Bytes(2, api::ToJson(value)); }

  void Wrapped(const Row& row, Value value) {
    if (row.wrap == 0) return Content(row.is, value);
    Frame(row.wrap, [&] { Content(row.is, value); });
  }

  void Content(Is message, Value value) {
    switch (message) {
      case Is::kParameterOf2:
        return Parameter2(value);
      case Is::kAdditionalOf2:
        return Additional(Is::kSchema2, value);
      case Is::kAdditionalOf3:
        return Additional(Is::kSchemaOf3, value);
      case Is::kSchemaOf3: {
        const bool refers = value.Has("$ref");
        return Frame(refers ? 2 : 1,
                     [&] { Members(refers ? Is::kReference3 : Is::kSchema3, value); });
      }
      case Is::kDefaultOf3:
        return Default3(value);
      default:
        return Members(message, value);
    }
  }

  // In messages of their own by where they are: Parameter within ParametersItem, and within the
  // former BodyParameter or NonBodyParameter with one of its kinds.
  void Parameter2(Value value) {
    Frame(1, [&] {
      const std::string_view in = value["in"].AsString();
      if (in == "body") return Frame(1, [&] { Members(Is::kBody2, value); });
      const bool path = in == "path";
      Frame(2,
            [&] { Frame(path ? 4 : 3, [&] { Members(path ? Is::kPath2 : Is::kQuery2, value); }); });
    });
  }

  void Additional(Is schema, Value value) {
    if (!value.IsMap()) return out_.Number(2, value.AsBool() ? 1 : 0);
    Frame(1, [&] { Content(schema, value); });
  }

  // Maps and lists have no place in it.
  void Default3(Value value) {
    if (value.IsNumber()) return out_.Double(1, value.AsDouble());
    if (value.kind() == api::Kind::kBool) return out_.Number(2, value.AsBool() ? 1 : 0);
    if (value.IsString()) out_.Bytes(3, value.AsString());
  }

  api::WireWriter out_;
};

}  // namespace

std::string OpenApiV2Protobuf(Value document) { return Encoder().Encode(Is::kDocument2, document); }

std::string OpenApiV3Protobuf(Value document) { return Encoder().Encode(Is::kDocument3, document); }

}  // namespace sextant::server
