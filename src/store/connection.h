// Connection: SQLite with errors as values. Statements are prepared once and reused.
//
// Threads: a Connection belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace sextant::store {

class Connection;

// One prepared statement. Bound texts must live until Step has returned.
class Statement {
 public:
  Statement() = default;
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  Statement& Bind(int index, int64_t value);
  Statement& Bind(int index, std::string_view text);
  // True: a row stands ready; false: done.
  Result<bool> Step();
  // Steps through a statement without rows, ready for the next use.
  Status Run();
  int64_t Int(int column) const;
  // Valid until the next Step.
  std::string_view Text(int column) const;

 private:
  friend class Connection;
  Connection* connection_ = nullptr;
  sqlite3_stmt* handle_ = nullptr;
};

class Connection {
 public:
  // The file must be there already.
  static Result<std::unique_ptr<Connection>> Open(const std::string& path);
  Connection(const Connection&) = delete;
  ~Connection();

  Status Run(const char* sql);
  Result<Statement> Prepare(std::string_view sql);
  Result<int64_t> Number(const char* sql);  // the first column of the first row
  bool read_only() const;

  // Copies what it can from the WAL into the file, without waiting for others. True if nothing is
  // left to copy: the next write then starts the WAL anew.
  Result<bool> CheckpointPassive();

  // Bytes in the WAL after the last commit through this connection.
  size_t wal_bytes() const { return wal_bytes_; }

  // Closing does not touch the files any more: what the WAL holds stays there for the next start.
  void LeaveFilesAlone();

  // The last failure as an Error: "what: why (path)".
  Error Failure(std::string_view what) const;
  // What the last failure was, for texts that name a remedy.
  bool LastIsCorruption() const;
  bool LastIsFullDisk() const;

 private:
  explicit Connection(std::string path) : path_(std::move(path)) {}
  static int OnWal(void* self, sqlite3*, const char*, int pages);

  const std::string path_;
  sqlite3* db_ = nullptr;
  size_t wal_bytes_ = 0;
};

}  // namespace sextant::store
