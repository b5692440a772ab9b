#include "store/connection.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace sextant::store {
namespace {

constexpr int kBusyTimeoutMs = 5000;  // a person with the sqlite3 shell in the same file
constexpr size_t kPageBytes = 4096;
constexpr size_t kWalFrameBytes = kPageBytes + 24;

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : connection_(other.connection_), handle_(std::exchange(other.handle_, nullptr)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(connection_, other.connection_);
  std::swap(handle_, other.handle_);
  return *this;
}

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement& Statement::Bind(int index, int64_t value) {
  sqlite3_bind_int64(handle_, index, value);
  return *this;
}

Statement& Statement::Bind(int index, std::string_view text) {
  // An empty view may have no data, which SQLite would take for NULL.
  const char* data = text.data() ? text.data() : "";
  sqlite3_bind_text64(handle_, index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Result<bool> Statement::Step() {
  const int rc = sqlite3_step(handle_);
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  return Fail(connection_->Failure(sqlite3_sql(handle_)));
}

Status Statement::Run() {
  Result<bool> stepped = Step();
  sqlite3_reset(handle_);
  if (!stepped) return Fail(std::move(stepped).error());
  return {};
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(handle_, column); }

std::string_view Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  return {text ? text : "", static_cast<size_t>(sqlite3_column_bytes(handle_, column))};
}

Result<std::unique_ptr<Connection>> Connection::Open(const std::string& path) {
  std::unique_ptr<Connection> connection(new Connection(path));
  const int rc = sqlite3_open_v2(path.c_str(), &connection->db_,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (rc != SQLITE_OK) return Fail(connection->Failure("open"));
  sqlite3_extended_result_codes(connection->db_, 1);
  sqlite3_busy_timeout(connection->db_, kBusyTimeoutMs);
  return connection;
}

Connection::~Connection() { sqlite3_close(db_); }

Status Connection::Run(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return Fail(Failure(sql));
  // Setting wal_autocheckpoint takes the hook away, so it is put back after every such call.
  sqlite3_wal_hook(db_, &Connection::OnWal, this);
  return {};
}

int Connection::OnWal(void* self, sqlite3*, const char*, int pages) {
  static_cast<Connection*>(self)->wal_bytes_ = static_cast<size_t>(pages) * kWalFrameBytes;
  return SQLITE_OK;
}

Result<Statement> Connection::Prepare(std::string_view sql) {
  Statement statement;
  statement.connection_ = this;
  const int rc = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                    SQLITE_PREPARE_PERSISTENT, &statement.handle_, nullptr);
  if (rc != SQLITE_OK) return Fail(Failure(sql));
  return statement;
}

Result<int64_t> Connection::Number(const char* sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

bool Connection::read_only() const { return sqlite3_db_readonly(db_, "main") == 1; }

Result<bool> Connection::CheckpointPassive() {
  int in_wal = 0;
  int copied = 0;
  const int rc =
      sqlite3_wal_checkpoint_v2(db_, "main", SQLITE_CHECKPOINT_PASSIVE, &in_wal, &copied);
  if (rc == SQLITE_BUSY) return false;
  if (rc != SQLITE_OK) return Fail(Failure("checkpoint"));
  return in_wal == copied;
}

void Connection::LeaveFilesAlone() {
  sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Error Connection::Failure(std::string_view what) const {
  const char* why = db_ ? sqlite3_errmsg(db_) : "out of memory";
  const int code = db_ ? sqlite3_extended_errcode(db_) : SQLITE_NOMEM;
  Error error;
  error.reason = "InternalError";
  error.message = fmt::format("state file {}: {}: {} (SQLite {})", path_, what, why, code);
  return error;
}

bool Connection::LastIsCorruption() const {
  const int code = sqlite3_errcode(db_) & 0xff;
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

// SQLite's helper files give an I/O error where the database itself gives SQLITE_FULL.
bool Connection::LastIsFullDisk() const {
  const int code = sqlite3_errcode(db_) & 0xff;
  const int system = sqlite3_system_errno(db_);
  return code == SQLITE_FULL ||
         (code == SQLITE_IOERR && (system == ENOSPC || system == EDQUOT || system == EFBIG));
}

}  // namespace sextant::store
