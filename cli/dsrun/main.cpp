#include "cli/dsrun/dsrun.h"

int main(int argc, char** argv) { return cli::run_dsrun(argc, argv); }
