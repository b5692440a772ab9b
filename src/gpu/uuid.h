// Name-based UUIDs: the same names give the same UUID, on every start and every machine.
//
//   CardUuid("gpu-lab", "gpu-lab-worker", 0) == "GPU-..."
//
// RFC 4122 version 5 (SHA-1) over the names, each with its length so that no two lists of names
// read alike. Pure functions.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace sextant::gpu {

std::string NameUuid(std::initializer_list<std::string_view> names);

// "GPU-xxxxxxxx-xxxx-5xxx-xxxx-xxxxxxxxxxxx" for the card with this index on this node.
std::string CardUuid(std::string_view cluster, std::string_view node, int index);

// "MIG-..." for the instance that begins at memory slice `start` of a card.
std::string MigUuid(std::string_view card_uuid, std::string_view profile, int start);

// A board's serial number, 13 digits as NVIDIA's, from its UUID.
std::string SerialOf(std::string_view card_uuid);

}  // namespace sextant::gpu
