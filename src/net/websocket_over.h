// Internal to net: a WebSocket over a stream whose handshake is done.
#pragma once

#include <memory>
#include <string>

#include "net/websocket.h"
#include "net/ws_codec.h"

namespace sextant::net {

std::shared_ptr<WebSocket> WebSocketOver(IoThread& io, std::shared_ptr<ByteStream> stream,
                                         WsDecoder::Role role, std::string protocol);

}  // namespace sextant::net
