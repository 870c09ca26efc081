//! What a WebAssembly module asks of its host and is asked: the names in its import
//! and export sections.

/// The names in a module's import and export sections.
#[derive(Debug, Default)]
pub struct Names {
    /// Each imported function, with the module that it comes from.
    pub imports: Vec<(String, String)>,
    /// Everything exported.
    pub exports: Vec<String>,
}

impl Names {
    /// Reads them.
    ///
    /// # Panics
    /// If it is no module, or imports anything but functions.
    #[must_use]
    pub fn of(module: &[u8]) -> Self {
        let mut names = Self::default();
        let mut reader = Reader(module.get(8..).expect("a module has a header"));
        while let Some(id) = reader.byte() {
            let size = reader.number();
            let mut section = Reader(reader.bytes(size));
            match id {
                2 => names.imports = section.imports(),
                7 => names.exports = section.exports(),
                _ => {}
            }
        }
        names
    }
}

/// Reads the binary format, as far as names need it.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }

    /// An unsigned LEB128 number.
    fn number(&mut self) -> usize {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte().expect("the module goes on");
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }

    fn name(&mut self) -> String {
        let length = self.number();
        String::from_utf8_lossy(self.bytes(length)).into_owned()
    }

    /// Imports of functions; this module has no others.
    fn imports(&mut self) -> Vec<(String, String)> {
        (0..self.number())
            .map(|_| {
                let name = (self.name(), self.name());
                assert_eq!(self.byte(), Some(0), "{name:?} is no function");
                self.number();
                name
            })
            .collect()
    }

    fn exports(&mut self) -> Vec<String> {
        (0..self.number())
            .map(|_| {
                let name = self.name();
                self.byte();
                self.number();
                name
            })
            .collect()
    }
}
