#include "preflight/checks.h"

#include <array>

namespace sextant::preflight {
namespace {

constexpr std::array<CheckKind, 14> kKinds = {{
    {"host.nvml", Layer::kDriver, false, false, "", "", ""},
    {"node.labels", Layer::kDriver, true, false, "NFD_LABEL_MISSING",
     "node feature discovery has seen an NVIDIA PCI function on the node",
     "that the driver answers"},
    {"rt.cdi", Layer::kToolkit, false, false, "", "", ""},
    {"rt.probe", Layer::kToolkit, true, true,
     "HANDLER_MISSING CDI_UNRESOLVABLE HOOK_ERROR LIB_NOT_FOUND",
     "the runtime started a container with a GPU, and the driver's programs are in it",
     "that other runtime handlers would"},
    {"dp.registered", Layer::kPlugin, true, false, "NOT_REGISTERED NODE_NOT_READY",
     "a kubelet that reports shows a device plugin's resource",
     "that each of its devices is healthy"},
    {"node.capacity", Layer::kPlugin, true, false, "ALLOCATABLE_ZERO UNHEALTHY_DEVICE",
     "every registered device is allocatable", "that one of them is free"},
    {"api.admit", Layer::kScheduler, true, true, "QUOTA POLICY INVALID",
     "the API server accepts a Pod with a GPU limit", ""},
    {"sched.place", Layer::kScheduler, true, true,
     "INSUFFICIENT TAINT CORDONED AFFINITY VOLUME_AFFINITY NOT_SCHEDULED UNSCHEDULABLE",
     "the scheduler found a node for one GPU", "that a larger Pod would find one"},
    {"kubelet.admit", Layer::kPod, true, true,
     "UNEXPECTED_ADMISSION TOPOLOGY_AFFINITY OUT_OF_GPU REJECTED NOT_ACKNOWLEDGED",
     "the kubelet took the Pod up and reports its container", ""},
    {"ctr.start", Layer::kPod, true, true, "START_ERROR", "the container's command has run", ""},
    {"ctr.identity", Layer::kPod, true, true, "GPU_NONE GPU_EXTRA GPU_WRONG",
     "the container lists exactly the card that the kubelet allocated", "that CUDA works on it"},
    {"ctr.cuda", Layer::kPod, false, false, "", "", ""},
    {"free.after", Layer::kPod, true, true, "TERMINATING_LONG DEVICE_HELD",
     "the card was given to a second Pod after the first had gone",
     "that no process of the first holds memory of the card"},
    {"serve.ready", Layer::kServing, false, false, "", "", ""},
}};

}  // namespace

std::span<const CheckKind> CheckKinds() { return kKinds; }

const CheckKind* FindCheckKind(std::string_view id) {
  for (const CheckKind& kind : kKinds)
    if (kind.id == id) return &kind;
  return nullptr;
}

}  // namespace sextant::preflight
