#include <unistd.h>

#include "api/schema.h"
#include "base/check.h"
#include "base/file.h"
#include "base/fuzz.h"
#include "store/connection.h"
#include "store/disk.h"

namespace sextant::store {
namespace {

// A state file with one object, made once; its row is what the input says.
class StateFile {
 public:
  StateFile() : folder_(*TempDir::Make("fuzz")), path_(folder_.path() + "/state.db") {
    Disk::Open(path_, clock_, nullptr, kNothing, &unused_).value()->Close();
    db_ = Connection::Open(path_).value();
    CHECK(db_->Run("PRAGMA synchronous=OFF; UPDATE revision SET revision = 100"));
  }

  // What a lab would read.
  Result<DiskState> Read(int64_t created, int64_t modified, std::string_view key,
                         std::string_view object) {
    CHECK(db_->Run("DELETE FROM objects"));
    {
      Statement add = db_->Prepare("INSERT INTO objects VALUES (?1, ?2, ?3, ?3, ?3, ?4)").value();
      CHECK(add.Bind(1, created).Bind(2, modified).Bind(3, key).Bind(4, object).Run());
    }
    DiskState state;
    auto disk = Disk::Open(path_, clock_, &api::Registry::Builtin(), kNothing, &state);
    if (!disk) return Fail(std::move(disk).error());
    return state;
  }

 private:
  inline static const Disk::Callbacks kNothing{[](uint64_t) {}, [](Error) {}};
  const RealClock clock_;
  const TempDir folder_;
  const std::string path_;
  DiskState unused_;
  std::unique_ptr<Connection> db_;
};

}  // namespace

// Two bytes of revisions, a key, a line "---", the object's text.
FUZZ_TARGET(state_row) {
  static StateFile file;
  fuzz::Bytes bytes(input);
  const auto created = static_cast<int8_t>(bytes.Byte());
  const auto modified = static_cast<int8_t>(bytes.Byte());
  const std::string_view key = bytes.Part();
  const Result<DiskState> state = file.Read(created, modified, key, bytes.Rest());
  if (!state) {
    CHECK(state.error().message.find("is damaged") != std::string::npos);
    return;
  }
  CHECK(state->entries.size() == 1);
  const Entry& entry = *state->entries[0];
  CHECK(entry.create_revision >= 1 && entry.create_revision <= entry.mod_revision);
  CHECK(entry.mod_revision <= state->revision);
  CHECK(entry.object["metadata"].IsMap());
}

}  // namespace sextant::store
