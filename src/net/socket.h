// Sockets as descriptors: connecting and listening. Internal to net.
#pragma once

#include "base/status.h"
#include "net/io.h"

namespace sextant::net {

// A non-blocking socket whose connection to `to` is made or under way.
Result<int> BeginConnect(const Endpoint& to);
// A listening, non-blocking socket; `at` gets its real port. An address in use is a UsageError that
// says what to do. A unix socket gets mode 0600; one left by a dead process is replaced.
Result<int> ListenOn(Endpoint& at);
// Accepts one connection, non-blocking; -1 if there is none or it failed.
int AcceptFrom(int listener);
// The numeric address of the other end; empty for unix sockets.
Endpoint PeerOf(int fd);

}  // namespace sextant::net
