#include "lab/api_service.h"

#include <gmock/gmock.h>

#include <map>

#include "api/json.h"
#include "client/testing.h"

namespace sextant::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps what is written, by resource; notes every write.
class Keeper : public client::testing::ScriptedClient {
 public:
  explicit Keeper(ManualLoop& loop) : ScriptedClient(loop), loop_(loop) {}
  void Get(client::Gvr gvr, client::ObjectName name, client::Callback<api::Object> done) override {
    const auto found = kept.find(gvr.resource);
    Answer(std::move(done),
           found == kept.end()
               ? Result<api::Object>(Fail(NotFound({"", std::string(gvr.resource)}, name.name)))
               : found->second);
  }
  void Create(client::Gvr gvr, client::ObjectName, api::Object object, client::WriteOptions,
              client::Callback<api::Object> done) override {
    Keep("create", gvr, std::move(object), std::move(done));
  }
  void Update(client::Gvr gvr, client::ObjectName, api::Object object, client::WriteOptions,
              client::Callback<api::Object> done) override {
    Keep("update", gvr, std::move(object), std::move(done));
  }

  std::vector<std::string> Publish(const net::Endpoint& at) {
    written_.clear();
    Status result = Fail(InternalError("not done"));
    PublishApiServer(*this, at, [&](Status status) { result = std::move(status); });
    loop_.RunReady();
    EXPECT_TRUE(result) << result.error().message;
    return written_;
  }

  std::map<std::string, api::Object, std::less<>> kept;

 private:
  void Keep(std::string_view verb, client::Gvr gvr, api::Object object,
            client::Callback<api::Object> done) {
    written_.push_back(fmt::format("{} {}", verb, gvr.resource));
    kept[std::string(gvr.resource)] = object;
    Answer(std::move(done), std::move(object));
  }
  void Answer(client::Callback<api::Object> done, Result<api::Object> result) {
    loop_.Post([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }

  ManualLoop& loop_;
  std::vector<std::string> written_;
};

TEST(ApiService, MadeOnceAndCorrectedAfterwards) {
  ManualLoop loop;
  Keeper cluster(loop);
  EXPECT_THAT(cluster.Publish({.address = "172.18.0.3", .port = 6443, .path = {}}),
              ElementsAre("create services", "create endpoints", "create endpointslices"));
  EXPECT_EQ(cluster.kept["services"]["spec"]["clusterIP"].AsString(), "10.96.0.1");
  EXPECT_EQ(api::ToJson(cluster.kept["endpoints"]["subsets"]),
            R"([{"addresses":[{"ip":"172.18.0.3"}],)"
            R"("ports":[{"name":"https","port":6443,"protocol":"TCP"}]}])");
  EXPECT_THAT(cluster.Publish({.address = "172.18.0.3", .port = 6443, .path = {}}), IsEmpty());
  // Another port: the way there is corrected, the Service stays as it is, and so do labels.
  api::Editor edit(cluster.kept["endpoints"]);
  edit.Root()["metadata"]["labels"].Set("mine", "kept");
  cluster.kept["endpoints"] = std::move(edit).Finish();
  EXPECT_THAT(cluster.Publish({.address = "172.18.0.3", .port = 7443, .path = {}}),
              ElementsAre("update endpoints", "update endpointslices"));
  EXPECT_EQ(cluster.kept["endpoints"]["metadata"]["labels"]["mine"].AsString(), "kept");
  EXPECT_EQ(cluster.kept["endpointslices"]["ports"].at(0)["port"].AsInt(), 7443);
}

TEST(ApiService, NeverLeadsToALoopbackAddress) {
  const auto seen = [](std::string address) {
    return ApiServerEndpoint({.address = std::move(address), .port = 1, .path = {}}).address;
  };
  for (const char* local : {"127.0.0.1", "::1", "0.0.0.0", "::"}) {
    EXPECT_EQ(seen(local), "172.18.0.2") << local;
  }
  EXPECT_EQ(seen("192.168.7.5"), "192.168.7.5");
}

}  // namespace
}  // namespace sextant::lab
