#include "api/protobuf.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "api/registry.h"

namespace sextant::api {
namespace {

const Message& Pod() { return *Registry::Builtin().FindKindMessage({"", "v1"}, "Pod"); }

std::string Unhex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

// Written by k8s.io/apimachinery's serializer, v0.36.3.
struct Golden {
  const char* json;
  const char* hex;
} const kGolden[] = {
    {"{}",
     "6b3873000a040a00120012450a100a0012001a0022002a00320038004200121c1a00320042004a005200580060006"
     "8008201008a01009a0100c201001a130a001a0022002a0032004a005a0072008801001a002200"},
    {R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":{"b":"2","a":"1"},)"
     R"("creationTimestamp":"2026-01-02T03:04:05Z"},"spec":{"containers":[{"name":"c",)"
     R"("ports":[{"containerPort":80}],"resources":{"limits":{"nvidia.com/gpu":"1"}},)"
     R"("livenessProbe":{"httpGet":{"port":"web"}}}],"volumes":[{"name":"v","emptyDir":{}}],)"
     R"("priority":-1},"status":{"phase":"Running"}})",
     "6b3873000a090a0276311203506f6412dc010a290a017012001a0022002a0032003800420808a5ebdcca0610005a0"
     "60a01611201315a060a01621201321292010a090a0176120412020a00125d0a016312002a00320a0a001000185022"
     "002a0042170a150a0e6e76696469612e636f6d2f67707512030a0131521f0a1312110a001209080110001a0377656"
     "21a002200100018002000280030006a007200800100880100900100a201001a00320042004a005200580060006800"
     "8201008a01009a0100c20100c801ffffffffffffffffff011a1a0a0752756e6e696e671a0022002a0032004a005a0"
     "072008801001a002200"},
};

TEST(Protobuf, WritesAndReadsWhatKubernetesWrites) {
  for (const Golden& g : kGolden) {
    auto doc = DecodeJson(g.json, Pod());
    ASSERT_TRUE(doc);
    std::string out;
    EncodeProtobuf(doc->root(), Pod(), out);
    EXPECT_EQ(out, Unhex(g.hex));
    auto envelope = OpenProtobuf(out);
    ASSERT_TRUE(envelope);
    auto back = DecodeProtobuf(envelope->raw, Pod(), envelope->meta);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_TRUE(Equal(back->root()["spec"], doc->root()["spec"]));
    EXPECT_TRUE(Equal(back->root()["metadata"], doc->root()["metadata"]));
  }
}

TEST(Protobuf, BrokenBytesAreRefusedOrRead) {
  EXPECT_EQ(OpenProtobuf("").error().message, "empty data");
  EXPECT_EQ(OpenProtobuf("{}").error().message,
            "provided data does not appear to be a protobuf message, expected prefix "
            "[107 56 115 0]");
  EXPECT_EQ(OpenProtobuf(kProtobufMagic).error().message, "empty body");
  std::string raw(OpenProtobuf(Unhex(kGolden[1].hex))->raw);
  // Cut anywhere, any one byte changed: never a crash, and what is read can be written.
  for (size_t i = 0; i < raw.size(); ++i) {
    (void)DecodeProtobuf(raw.substr(0, i), Pod(), {});
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = raw;
      changed[i] = static_cast<char>(changed[i] ^ 1 << bit);
      auto doc = DecodeProtobuf(changed, Pod(), {});
      if (!doc) continue;
      std::string out;
      EncodeProtobufRaw(doc->root(), Pod(), out);
      auto again = DecodeProtobuf(out, Pod(), {});
      ASSERT_TRUE(again);
      EXPECT_EQ(ToJson(again->root()), ToJson(doc->root()));
    }
  }
  // Unknown fields are skipped, a known one of the wrong type is an error.
  EXPECT_TRUE(DecodeProtobuf(Unhex("f20601aa"), Pod(), {}));
  EXPECT_EQ(DecodeProtobuf(Unhex("0801"), Pod(), {}).error().message,
            "proto: wrong wireType = 0 for field ObjectMeta");
}

TEST(Protobuf, ListsOfStoredObjects) {
  const Message& list = *Registry::Builtin().FindKindMessage({"", "v1"}, "PodList");
  std::vector<Object> pods;
  for (const Golden& g : kGolden) pods.push_back(*DecodeJson(g.json, Pod()));
  std::string streamed;
  Object meta = *ParseJson(R"({"resourceVersion":"7"})");
  EncodeProtobufList({"v1", "PodList"}, list, meta.root(), pods, streamed);

  std::string text = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},)"
                     R"("items":[)" +
                     ToJson(pods[0].root()) + "," + ToJson(pods[1].root()) + "]}";
  std::string whole;
  EncodeProtobuf(DecodeJson(text, list)->root(), list, whole);
  EXPECT_EQ(streamed, whole);
}

TEST(Protobuf, WatchFrames) {
  std::string body = Unhex(kGolden[0].hex);
  std::string out;
  AppendWatchFrame("ADDED", body, out);
  ASSERT_GT(out.size(), 4u);
  size_t n = static_cast<uint8_t>(out[2]) * 256u + static_cast<uint8_t>(out[3]);
  EXPECT_EQ(out.size(), n + 4);
  auto frame = OpenWatchFrame(std::string_view(out).substr(4));
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->type, "ADDED");
  EXPECT_EQ(frame->body, body);
}

}  // namespace
}  // namespace sextant::api
