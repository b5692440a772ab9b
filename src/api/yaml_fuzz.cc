#include "api/json.h"
#include "api/yaml.h"
#include "base/check.h"
#include "base/fuzz.h"

namespace sextant::api {

// What was read and is written again says the same.
FUZZ_TARGET(yaml) {
  StrictReport strict;
  const auto documents = ParseYaml(input, {.strict = &strict});
  if (!documents) return;
  for (const YamlDocument& document : *documents) {
    if (!document.object) continue;
    for (Value item : document.object.root().items()) (void)document.PlaceOf(item);
    std::string text;
    WriteYaml(document.object.root(), text);
    const auto again = ParseYaml(text);
    CHECK(again.has_value());
    CHECK(again->size() == 1);
    CHECK(Equal(document.object.root(), (*again)[0].object.root()));
  }
  (void)ResolveYaml(input);
}

}  // namespace sextant::api
