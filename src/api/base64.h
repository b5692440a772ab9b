// Base64 of JSON's byte fields: the standard alphabet with padding, as Go writes it.
#pragma once

#include <string>
#include <string_view>

namespace sextant::api {

std::string EncodeBase64(std::string_view bytes);
// Appends what `text` stands for; false if it is not base64. Line breaks are ignored.
bool DecodeBase64(std::string_view text, std::string& bytes);

}  // namespace sextant::api
