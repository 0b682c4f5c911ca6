//! A self-contained HTML page.

use std::fmt::Write;

/// A page under construction: headings, text, tables and charts, in order.
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Page {
        Page {
            title: title.into(),
            body: String::new(),
        }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) -> &mut Page {
        self.add(format_args!("<h2>{}</h2>\n", escape(text)))
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: &str) -> &mut Page {
        self.add(format_args!("<p>{}</p>\n", escape(text)))
    }

    /// Adds a chart.
    pub fn chart(&mut self, svg: &str) -> &mut Page {
        self.add(format_args!("<figure>{svg}</figure>\n"))
    }

    /// Adds a table.
    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) -> &mut Page {
        let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
            cells
                .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)))
                .collect::<String>()
        };
        self.add(format_args!(
            "<table><thead><tr>{}</tr></thead><tbody>\n",
            cells("th", &mut header.iter().copied())
        ));
        for row in rows {
            let row = cells("td", &mut row.iter().map(String::as_str));
            self.add(format_args!("<tr>{row}</tr>\n"));
        }
        self.add(format_args!("</tbody></table>\n"))
    }

    /// The whole page. It refers to nothing outside of itself.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let body = &self.body;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
             <style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n{body}</body></html>\n"
        )
    }

    fn add(&mut self, html: std::fmt::Arguments) -> &mut Page {
        self.body
            .write_fmt(html)
            .expect("writing to a string does not fail");
        self
    }
}

const STYLE: &str = "
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 56rem; padding: 0 1rem;
  color: #1b1b1b; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #ddd; white-space: nowrap; }
figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }
";

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_nothing_is_fetched() {
        let mut page = Page::new("<script>");
        page.heading("a & b")
            .table(&["x"], &[vec!["<b>".to_string()]]);
        let html = page.html();
        assert!(html.contains("<title>&lt;script&gt;</title>"));
        assert!(html.contains("a &amp; b") && html.contains("<td>&lt;b&gt;</td>"));
        assert!(!html.contains("http"));
    }
}
