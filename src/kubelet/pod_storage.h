// What a Pod keeps on the node's disk, and why it has to go when that is too much: the local
// storage part of the kubelet's eviction manager.
//
// Counted are the Pod's volumes that lie on the disk and its logs. A container's own writable layer
// is in memory here and bounded by itself (README.runtimes.md).
//
// Source: pkg/kubelet/eviction/eviction_manager.go (localStorageEviction), helpers.go (messages).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/document.h"

namespace sextant::kubelet {

// In bytes of the disk, as `du` counts.
struct PodStorage {
  std::map<std::string, int64_t> volumes;
  int64_t logs = 0;
  int64_t Total() const;
};

// Walks <pod_directory>/volumes and /logs; what cannot be read counts nothing. Blocks.
PodStorage MeasureStorage(const std::string& pod_directory);

// Whether the Pod has volumes whose size nothing but the disk bounds.
bool KeepsOnDisk(const api::Object& pod);
// The message of the Pod's eviction for a limit of its own; empty: it keeps them all.
std::string StorageExcess(const api::Object& pod, const PodStorage& used);
// That of the eviction for a full disk.
std::string LowOnStorage(int64_t least_free, int64_t free);

}  // namespace sextant::kubelet
