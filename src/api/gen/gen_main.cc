// api_gen: the build step that turns the .proto files into tables and typed views.
//
//   api_gen DESCRIPTOR_SET OUT_DIR RESOURCES.txt...
//
// writes OUT_DIR/tables.cc, OUT_DIR/views/<file>.h and OUT_DIR/views/<file>_mut.h. The output
// depends on the input only.
#include <filesystem>
#include <fstream>
#include <set>

#include "api/gen/model.h"

int main(int argc, char** argv) {
  using namespace sextant::api::gen;
  if (argc < 4) Die("usage: api_gen DESCRIPTOR_SET OUT_DIR RESOURCES.txt...");
  const std::filesystem::path out = argv[2];
  const Model model = ReadModel(argv[1], std::vector<std::string>(argv + 3, argv + argc));
  std::filesystem::create_directories(out / "views");
  auto write = [](const std::filesystem::path& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    if (!file.flush()) Die(path.string() + ": cannot be written");
  };
  write(out / "tables.cc", RenderTables(model));
  std::set<std::string> files;
  for (const MessageModel& m : model.messages) files.insert(m.file);
  for (const std::string& file : files) {
    write(out / "views" / (file + ".h"), RenderViews(model, file));
    write(out / "views" / (file + "_mut.h"), RenderBuilders(model, file));
  }
  return 0;
}
