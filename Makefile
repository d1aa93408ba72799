# A thin front: CMake and Ninja build, scripts/ and tests/run do the rest.
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 900
SOAK_TARGETS ?= 24
SOAK_SPEED ?= 1200
SHARE = $(DESTDIR)$(PREFIX)/share

.PHONY: help build run test bench lint fuzz soak install clean

help:
	@echo 'make build    the release binary, build/gputally'
	@echo 'make run      install what is missing, build, report on a simulated fleet and serve it'
	@echo 'make test     install what is missing, and run everything that CI runs'
	@echo 'make bench    the benchmarks, beside the peers that are installed'
	@echo 'make lint     format, include directions, the data tables'
	@echo 'make soak     run the service for SOAK_SECONDS (900) over SOAK_TARGETS (24) simulated targets, SOAK_SPEED (1200) times real'
	@echo 'make fuzz     fuzz every decoder for FUZZ_SECONDS (60) each'
	@echo 'make install  to PREFIX (/usr/local), under DESTDIR'
	@echo 'make clean    remove build/'
	@echo 'One step of the tests: tests/run NAME (tests/run --list).'

build: build/release/build.ninja
	@cmake --build build/release --target gputally
	@ln -sfn release/gputally build/gputally

build/release/build.ninja:
	@cmake --preset release >build-release.log 2>&1 || { cat build-release.log; rm build-release.log; exit 1; }
	@rm -f build-release.log

run:
	@scripts/deps build
	@$(MAKE) --no-print-directory build
	build/gputally demo --serve

test:
	@scripts/deps test
	@tests/run all

bench:
	@scripts/deps bench
	@bench/run

lint:
	@scripts/deps test
	@tests/run format layers data

fuzz:
	@scripts/deps test
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run fuzz

soak: build
	@scripts/deps test
	@cmake --build build/release --target exporters
	@python3 tests/e2e/soak.py build/gputally --seconds $(SOAK_SECONDS) \
		--targets $(SOAK_TARGETS) --speed $(SOAK_SPEED)

install: build
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'
	@ln -sfn gputally '$(DESTDIR)$(PREFIX)/bin/kubectl-gputally'
	@install -d '$(SHARE)/man/man1' '$(SHARE)/bash-completion/completions' \
		'$(SHARE)/zsh/site-functions' '$(SHARE)/fish/vendor_completions.d'
	@build/gputally man >'$(SHARE)/man/man1/gputally.1'
	@build/gputally completion bash >'$(SHARE)/bash-completion/completions/gputally'
	@build/gputally completion zsh >'$(SHARE)/zsh/site-functions/_gputally'
	@build/gputally completion fish >'$(SHARE)/fish/vendor_completions.d/gputally.fish'

clean:
	rm -rf build
