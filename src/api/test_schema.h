// A small schema for the tests of this room: a Pod with a few fields of every kind. Only for tests.
#pragma once

#include "api/schema.h"

namespace sextant::api::test {

inline const Field kObjectMetaFields[] = {
    {.name = "name", .number = 1},
    {.name = "namespace", .number = 3},
    {.name = "generation", .number = 7, .type = Type::kInt64},
    {.name = "creationTimestamp", .number = 8, .type = Type::kTime, .presence = Presence::kPointer},
    {.name = "labels", .number = 11, .shape = Shape::kMap},
    {.name = "finalizers",
     .number = 14,
     .shape = Shape::kList,
     .list_type = ListType::kSet,
     .patch_merge = true},
};
inline const Message kObjectMeta = {.name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
                                    .go_name = "v1.ObjectMeta",
                                    .fields = kObjectMetaFields};

inline constexpr std::string_view kPortKeys[] = {"containerPort", "protocol"};
inline const Field kPortFields[] = {
    {.name = "name", .number = 1},
    {.name = "containerPort", .number = 3, .type = Type::kInt32, .presence = Presence::kAlways},
    {.name = "protocol", .number = 4, .default_json = "\"TCP\""},
};
inline const Message kPort = {
    .name = "ContainerPort", .go_name = "v1.ContainerPort", .fields = kPortFields};

inline const Field kResourcesFields[] = {
    {.name = "limits",
     .go_type = "v1.ResourceList",
     .number = 1,
     .type = Type::kQuantity,
     .shape = Shape::kMap},
    {.name = "requests", .number = 2, .type = Type::kQuantity, .shape = Shape::kMap},
};
inline const Message kResources = {.name = "ResourceRequirements",
                                   .go_name = "v1.ResourceRequirements",
                                   .fields = kResourcesFields};

inline constexpr std::string_view kNameKey[] = {"name"};
inline const Field kContainerFields[] = {
    {.name = "name", .number = 1, .presence = Presence::kAlways},
    {.name = "args", .number = 4, .shape = Shape::kList},
    {.name = "ports",
     .number = 6,
     .type = Type::kMessage,
     .shape = Shape::kList,
     .message = &kPort,
     .list_type = ListType::kMap,
     .list_map_keys = kPortKeys,
     .patch_merge_key = "containerPort",
     .patch_merge = true},
    {.name = "resources", .number = 8, .type = Type::kMessage, .message = &kResources},
    {.name = "probePort", .number = 30, .type = Type::kIntOrString},
};
inline const Message kContainer = {
    .name = "Container", .go_name = "v1.Container", .fields = kContainerFields};

inline const Field kHostPathFields[] = {
    {.name = "path", .number = 1, .presence = Presence::kAlways}};
inline const Message kHostPath = {
    .name = "HostPath", .go_name = "v1.HostPathVolumeSource", .fields = kHostPathFields};
inline const Field kSourceFields[] = {{.name = "hostPath",
                                       .number = 1,
                                       .type = Type::kMessage,
                                       .presence = Presence::kPointer,
                                       .pointer = true,
                                       .message = &kHostPath}};
inline const Message kSource = {
    .name = "VolumeSource", .go_name = "v1.VolumeSource", .fields = kSourceFields};
extern const Field kVolumeFields[3];
inline const Field kVolumeFields[3] = {
    {.name = "name", .number = 1, .presence = Presence::kAlways},
    {.name = "volumeSource",
     .go_name = "VolumeSource",
     .number = 2,
     .type = Type::kMessage,
     .inlined = true,
     .message = &kSource},
    {.name = "hostPath",
     .number = 1,
     .type = Type::kMessage,
     .presence = Presence::kPointer,
     .pointer = true,
     .via = &kVolumeFields[1],
     .message = &kHostPath},
};
inline const Message kVolume = {.name = "Volume", .go_name = "v1.Volume", .fields = kVolumeFields};

inline const Field kPodSpecFields[] = {
    {.name = "volumes",
     .number = 1,
     .type = Type::kMessage,
     .shape = Shape::kList,
     .message = &kVolume,
     .list_type = ListType::kMap,
     .list_map_keys = kNameKey,
     .patch_merge_key = "name",
     .patch_merge = true,
     .patch_retain_keys = true},
    {.name = "containers",
     .go_type = "[]v1.Container",
     .number = 2,
     .type = Type::kMessage,
     .shape = Shape::kList,
     .presence = Presence::kAlways,
     .message = &kContainer,
     .list_type = ListType::kMap,
     .list_map_keys = kNameKey,
     .patch_merge_key = "name",
     .patch_merge = true},
    {.name = "restartPolicy", .go_type = "v1.RestartPolicy", .number = 3},
    {.name = "priority",
     .number = 25,
     .type = Type::kInt32,
     .presence = Presence::kPointer,
     .pointer = true},
    {.name = "nodeSelector", .number = 7, .shape = Shape::kMap, .map_atomic = true},
    {.name = "hostNetwork", .number = 11, .type = Type::kBool},
    {.name = "ratio", .number = 60, .type = Type::kDouble},
    {.name = "timeout",
     .number = 61,
     .type = Type::kDuration,
     .presence = Presence::kPointer,
     .pointer = true},
    {.name = "secret", .number = 62, .type = Type::kBytes},
    {.name = "started",
     .number = 63,
     .type = Type::kTime,
     .presence = Presence::kPointer,
     .pointer = true},
    {.name = "seen", .number = 64, .type = Type::kMicroTime},
    {.name = "extra",
     .number = 65,
     .type = Type::kRawExtension,
     .presence = Presence::kPointer,
     .pointer = true},
};
inline const Message kPodSpec = {
    .name = "PodSpec", .go_name = "v1.PodSpec", .fields = kPodSpecFields};

inline const Field kPodStatusFields[] = {{.name = "phase", .number = 1}};
inline const Message kPodStatus = {
    .name = "PodStatus", .go_name = "v1.PodStatus", .fields = kPodStatusFields};

inline const Field kPodFields[] = {
    {.name = "kind"},
    {.name = "apiVersion"},
    {.name = "metadata", .number = 1, .type = Type::kMessage, .message = &kObjectMeta},
    {.name = "spec", .number = 2, .type = Type::kMessage, .message = &kPodSpec},
    {.name = "status", .number = 3, .type = Type::kMessage, .message = &kPodStatus},
};
inline const Message kPod = {.name = "Pod", .go_name = "v1.Pod", .fields = kPodFields};

}  // namespace sextant::api::test
