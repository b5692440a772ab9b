// ByteStream over a Transport. Internal to net: how server, client and dialler make streams.
#pragma once

#include <memory>
#include <string>

#include "net/stream.h"
#include "net/transport.h"

namespace sextant::net {

// Takes `transport` over (already started or not). `out` is sent first; `in` is handed to on_data
// first. I/O thread.
std::shared_ptr<ByteStream> StreamOver(std::shared_ptr<Transport> transport, Peer peer,
                                       std::string out, std::string in);

}  // namespace sextant::net
