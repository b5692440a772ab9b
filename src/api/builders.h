// What the generated typed builders (api/views/core_v1_mut.h, ...) are made of.
//
// A builder is a Mut with named, typed setters. It stands beside the view of the same message, with
// "Mut" after its name:
//
//   #include "api/views/core_v1_mut.h"
//
//   Editor edit;
//   core_v1::PodMut pod(edit.Root());
//   pod.SetType();                                   // kind and apiVersion
//   pod.metadata().set_name("train");
//   core_v1::ContainerMut c = pod.spec().add_containers();
//   c.set_image("trainer:1");
//   c.resources().limits()["nvidia.com/gpu"].SetString("1");
//   Object object = std::move(edit).Finish(schema);
//
// set_x for scalars (Time as RFC 3339, bytes as base64), add_x for lists, x() for the builder of a
// message and for the bare Mut of everything else. Nothing is made before something is set.
#pragma once

#include <cstdint>
#include <string_view>

#include "api/document.h"

namespace sextant::api {

struct Builder {
  Mut m;
  Builder() = default;
  explicit Builder(Mut mut) : m(mut) {}
};

}  // namespace sextant::api
