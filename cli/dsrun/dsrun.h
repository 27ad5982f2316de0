// dsrun without its main: arguments in, exit code out.
#pragma once

namespace cli {

int run_dsrun(int argc, char** argv);

}  // namespace cli
