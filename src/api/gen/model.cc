#include "api/gen/model.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/text_format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

#include "api/gen/rows.h"
#include "options.pb.h"

namespace sextant::api::gen {
namespace {

namespace pb = google::protobuf;
using namespace sx;  // the words of options.proto

// A comment as one line of plain text.
template <typename Descriptor>
std::string Comment(const Descriptor& d) {
  pb::SourceLocation location;
  if (!d.GetSourceLocation(&location)) return "";
  std::string out;
  for (char c : location.leading_comments) {
    const bool space = c == ' ' || c == '\n';
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string UpperFirst(std::string s) {
  if (!s.empty() && s[0] >= 'a' && s[0] <= 'z') s[0] = static_cast<char>(s[0] - 'a' + 'A');
  return s;
}

Type TypeOfScalar(Scalar scalar) {
  switch (scalar) {
    case NONE:
      return Type::kMessage;
    case QUANTITY:
      return Type::kQuantity;
    case TIME:
      return Type::kTime;
    case MICRO_TIME:
      return Type::kMicroTime;
    case DURATION:
      return Type::kDuration;
    case INT_OR_STRING:
      return Type::kIntOrString;
    case RAW_EXTENSION:
      return Type::kRawExtension;
    case FIELDS_V1:
      return Type::kFieldsV1;
    case STRING_LIST:
      return Type::kStringList;
    case ANY:
    case SCHEMA_OR_LIST:
    case SCHEMA_OR_BOOL:
    case SCHEMA_OR_STRINGS:
      return Type::kAny;
  }
  Die("unknown scalar");
}

// Values with a JSON form that our codec has, but no protobuf form.
bool HasNoProtobuf(Scalar scalar) {
  return scalar == ANY || scalar == SCHEMA_OR_LIST || scalar == SCHEMA_OR_BOOL ||
         scalar == SCHEMA_OR_STRINGS;
}

Type TypeOf(const pb::FieldDescriptor& fd) {
  switch (fd.type()) {
    case pb::FieldDescriptor::TYPE_BOOL:
      return Type::kBool;
    case pb::FieldDescriptor::TYPE_INT32:
      return Type::kInt32;
    case pb::FieldDescriptor::TYPE_INT64:
      return Type::kInt64;
    case pb::FieldDescriptor::TYPE_UINT32:
      return Type::kUint32;
    case pb::FieldDescriptor::TYPE_DOUBLE:
      return Type::kDouble;
    case pb::FieldDescriptor::TYPE_STRING:
      return Type::kString;
    case pb::FieldDescriptor::TYPE_BYTES:
      return Type::kBytes;
    case pb::FieldDescriptor::TYPE_MESSAGE:
      return TypeOfScalar(fd.message_type()->options().GetExtension(sx::m).scalar());
    default:
      Die(fd.full_name() + ": a type that Kubernetes does not use");
  }
}

uint16_t FlagsOf(const FieldFacts& facts) {
  int flags = 0;
  if (facts.ptr()) flags |= kPointerFlag;
  if (facts.inline_()) flags |= kInlineFlag;
  if (facts.required()) flags |= kRequiredFlag;
  if (facts.immutable()) flags |= kImmutableFlag;
  if (facts.atomic()) flags |= kMapAtomicFlag;
  if (facts.granular()) flags |= kMapGranularFlag;
  for (int p : facts.patch()) {
    if (p == MERGE) flags |= kPatchMergeFlag;
    if (p == REPLACE) flags |= kPatchReplaceFlag;
    if (p == RETAINKEYS) flags |= kPatchRetainKeysFlag;
  }
  return static_cast<uint16_t>(flags);
}

class Reader {
 public:
  Model Read(const pb::FileDescriptorSet& set) {
    pb::DescriptorPool pool;
    std::vector<const pb::FileDescriptor*> files;
    for (const auto& proto : set.file()) {
      const pb::FileDescriptor* built = pool.BuildFile(proto);
      if (built == nullptr) Die(proto.name() + ": cannot be built");
      if (built->options().HasExtension(sx::file)) files.push_back(built);
    }
    for (const auto* each : files) Declare(*each);
    for (const auto* each : files) Fill(*each);
    SpreadJsonOnly();
    ShareDescriptions();
    return std::move(model_);
  }

 private:
  static bool IsMessage(const pb::Descriptor& d) {
    return d.options().GetExtension(sx::m).scalar() == NONE;
  }

  void Declare(const pb::FileDescriptor& in) {
    const FileFacts& facts = in.options().GetExtension(sx::file);
    const std::string prefix = facts.has_model() ? facts.model() : in.package();
    for (int i = 0; i < in.message_type_count(); ++i) {
      const pb::Descriptor& d = *in.message_type(i);
      if (!IsMessage(d)) continue;
      const MessageFacts& said = d.options().GetExtension(sx::m);
      MessageModel out;
      out.simple = d.name();
      out.name = prefix + "." + d.name();
      out.file = in.name().substr(0, in.name().rfind('.'));
      out.go_name = facts.go() + "." + d.name();
      out.description = Comment(d);
      out.unions = said.unions();
      if (said.top()) {
        if (!facts.has_version()) Die(out.name + ": a kind outside of any API group");
        out.group = facts.group();
        out.version = facts.version();
        out.kind = d.name();
        const std::string gv = out.group.empty() ? out.version : out.group + "/" + out.version;
        model_.by_kind[gv + " " + out.kind] = static_cast<int>(model_.messages.size());
        out.flags |= kTopFlag;
      }
      if (said.json_only()) out.flags |= kJsonOnlyFlag;
      if (said.atomic()) out.flags |= kAtomicFlag;
      index_[&d] = static_cast<int>(model_.messages.size());
      model_.messages.push_back(std::move(out));
    }
  }

  void Fill(const pb::FileDescriptor& in) {
    for (int i = 0; i < in.message_type_count(); ++i) {
      const pb::Descriptor& d = *in.message_type(i);
      if (!IsMessage(d)) continue;
      MessageModel& out = model_.messages[static_cast<size_t>(index_.at(&d))];
      const bool json_only = (out.flags & kJsonOnlyFlag) != 0;
      if ((out.flags & kTopFlag) != 0) {
        AddTypeMeta(&out);
      }
      for (int k = 0; k < d.field_count(); ++k) {
        const pb::FieldDescriptor& fd = *d.field(k);
        FieldModel field = ReadField(fd);
        if (json_only) field.number = 0;
        if (field.type == Type::kAny || HasScalarWithoutProtobuf(fd)) out.flags |= kJsonOnlyFlag;
        out.fields.push_back(std::move(field));
      }
    }
  }

  static void AddTypeMeta(MessageModel* out) {
    FieldModel kind, version;
    kind.name = "kind";
    kind.go_name = "Kind";
    kind.description = "Kind of the object, for example Pod.";
    version.name = "apiVersion";
    version.go_name = "APIVersion";
    version.description =
        "API group and version that the object is written in, for example apps/v1.";
    out->fields.push_back(kind);
    out->fields.push_back(version);
  }

  // A field without a sentence of its own has that of its message.
  void ShareDescriptions() {
    for (MessageModel& message : model_.messages) {
      for (FieldModel& field : message.fields) {
        if (!field.description.empty() || field.message < 0) continue;
        field.description = model_.messages[static_cast<size_t>(field.message)].description;
      }
    }
  }

  static bool HasScalarWithoutProtobuf(const pb::FieldDescriptor& fd) {
    const pb::FieldDescriptor& v = fd.is_map() ? *fd.message_type()->map_value() : fd;
    return v.type() == pb::FieldDescriptor::TYPE_MESSAGE &&
           HasNoProtobuf(v.message_type()->options().GetExtension(sx::m).scalar());
  }

  FieldModel ReadField(const pb::FieldDescriptor& fd) const {
    const FieldFacts& facts = fd.options().GetExtension(sx::f);
    const pb::FieldDescriptor& value = fd.is_map() ? *fd.message_type()->map_value() : fd;
    FieldModel out;
    out.name = fd.json_name();
    out.go_name = facts.has_go() ? facts.go() : UpperFirst(out.name);
    out.go_type = facts.type();
    out.number = static_cast<uint32_t>(fd.number());
    out.description = Comment(fd);
    out.type = TypeOf(value);
    if (out.type == Type::kMessage) out.message = index_.at(value.message_type());
    out.shape = fd.is_map() ? Shape::kMap : fd.is_repeated() ? Shape::kList : Shape::kSingle;
    out.presence = facts.always()                    ? Presence::kAlways
                   : facts.ptr() || facts.omitzero() ? Presence::kPointer
                                                     : Presence::kOmitEmpty;
    out.flags = FlagsOf(facts);
    out.default_json = facts.default_();
    out.merge_key = facts.merge_key();
    out.list_type = static_cast<ListType>(facts.list());
    out.list_map_keys.assign(facts.keys().begin(), facts.keys().end());
    out.enum_values.assign(facts.enum_().begin(), facts.enum_().end());
    return out;
  }

  // Who holds a message without a protobuf form has none either.
  void SpreadJsonOnly() {
    for (bool again = true; again;) {
      again = false;
      for (MessageModel& message : model_.messages) {
        if ((message.flags & kJsonOnlyFlag) != 0) continue;
        for (const FieldModel& field : message.fields) {
          if (field.message < 0) continue;
          const auto& below = model_.messages[static_cast<size_t>(field.message)];
          if ((below.flags & kJsonOnlyFlag) == 0) continue;
          message.flags |= kJsonOnlyFlag;
          again = true;
        }
      }
    }
  }

  Model model_;
  std::map<const pb::Descriptor*, int> index_;
};

std::pair<std::string, std::string> SplitGroupVersion(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return {"", text};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

int KindMessage(const Model& model, const std::string& gv, const std::string& kind) {
  auto it = model.by_kind.find(gv + " " + kind);
  if (it == model.by_kind.end()) Die("resource of unknown kind " + gv + " " + kind);
  return it->second;
}

ResourceModel ReadResource(const Model& model, const ResourceFacts& facts) {
  ResourceModel out;
  std::tie(out.group, out.version) = SplitGroupVersion(facts.group_version());
  out.plural = facts.plural();
  out.singular = facts.singular();
  out.kind = facts.kind();
  out.list_kind = facts.has_list_kind() ? facts.list_kind() : facts.kind() + "List";
  out.hash = facts.hash();
  out.storage = facts.storage();
  out.short_names.assign(facts.short_names().begin(), facts.short_names().end());
  out.categories.assign(facts.categories().begin(), facts.categories().end());
  out.verbs.assign(facts.verbs().begin(), facts.verbs().end());
  out.selectable.assign(facts.selectable().begin(), facts.selectable().end());
  out.namespaced = !facts.cluster();
  out.review = facts.review();
  out.message = KindMessage(model, facts.group_version(), out.kind);
  for (const std::string& verb : out.verbs) {
    if (verb == "list") KindMessage(model, facts.group_version(), out.list_kind);
  }
  for (const SubresourceFacts& sub : facts.sub()) {
    SubresourceModel s;
    s.name = sub.name();
    const size_t space = sub.kind().find(' ');
    const std::string gv =
        space == std::string::npos ? facts.group_version() : sub.kind().substr(0, space);
    s.kind = space == std::string::npos ? sub.kind() : sub.kind().substr(space + 1);
    std::tie(s.group, s.version) = SplitGroupVersion(gv);
    s.message = KindMessage(model, gv, s.kind);
    s.verbs.assign(sub.verbs().begin(), sub.verbs().end());
    out.subresources.push_back(std::move(s));
  }
  return out;
}

}  // namespace

void Die(const std::string& message) {
  std::fprintf(stderr, "api_gen: %s\n", message.c_str());
  std::exit(1);
}

Model ReadModel(const std::string& descriptor_set, const std::vector<std::string>& resource_files) {
  std::ifstream in(descriptor_set, std::ios::binary);
  pb::FileDescriptorSet set;
  if (!in || !set.ParseFromIstream(&in)) Die(descriptor_set + ": cannot be read");
  Model model = Reader().Read(set);
  for (const std::string& path : resource_files) {
    std::ifstream text(path);
    pb::io::IstreamInputStream stream(&text);
    ResourceFile resources;
    if (!text || !pb::TextFormat::Parse(&stream, &resources)) Die(path + ": cannot be read");
    for (const ResourceFacts& r : resources.resource()) {
      model.resources.push_back(ReadResource(model, r));
    }
  }
  return model;
}

}  // namespace sextant::api::gen
